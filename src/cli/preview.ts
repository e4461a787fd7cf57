// `kube-proxy plan` and `kube-proxy render`.

import type { Family } from '../lib/ip.ts'
import { countCommands, formatPlan, formatPlanJson, formatScripts } from '../diagnose/preview/format.ts'
import { type NodeOfCluster, readObjects } from '../diagnose/explain/read-known.ts'
import { paintFor } from '../diagnose/paint.ts'
import { askRunningProxy, previewMode, type Preview } from '../diagnose/preview/preview-mode.ts'
import { hasIpv6 } from '../compose/families.ts'
import { readMachineAddresses } from '../compose/machine-addresses.ts'
import { nodeNameOf } from '../compose/settings.ts'
import { modeNames } from '../modes/all.ts'
import type { ScriptReader } from '../modes/dry-run.ts'
import { loadQuietly, withNode } from './load-options.ts'

const exitStatus = { nothingToDo: 0, failure: 1, changes: 2 } as const

interface PreviewOptions {
  readonly mode: string | undefined
  readonly family: '4' | '6' | undefined
}

export interface PlanOptions extends PreviewOptions {
  readonly limit: number | undefined
  readonly 'control-socket': string | undefined
  readonly output: 'text' | 'json'
}

export interface RenderOptions extends PreviewOptions {
  readonly node: string | undefined
  readonly for: ScriptReader | undefined
}

type Given = ReadonlyMap<string, unknown>

export async function runPlanCommand(options: PlanOptions, given: Given): Promise<number> {
  const { limit = 100, 'control-socket': socket = '', output } = options
  const { node, mode: running } = given.size === 0 ? await askRunningProxy(socket) : await readNode(given)
  const cluster = { machineAddresses: readMachineAddresses(), ...node }
  const shown = options.mode ?? running
  const previews: Preview[] = []
  for (const mode of modeNames) {
    for (const family of familiesOf(options, hasIpv6() ? [4, 6] : [4])) {
      previews.push(await previewMode(cluster, { mode, family, kernel: 'this machine', onProblem: () => {} }))
    }
  }
  const plan = { source: cluster.source, nodeName: nodeNameOf(cluster.config), shown, previews }
  const paint = paintFor(process.stdout, process.env)
  process.stdout.write(output === 'json' ? formatPlanJson(plan) : formatPlan({ ...plan, limit }, paint))
  const ofMode = previews.filter(({ mode }) => mode === shown)
  if (ofMode.some(({ dryRun }) => dryRun === undefined)) return exitStatus.failure
  const isDone = ofMode.every(({ dryRun }) => countCommands(dryRun!) === 0)
  return isDone ? exitStatus.nothingToDo : exitStatus.changes
}

export async function runRenderCommand(options: RenderOptions, given: Given): Promise<number> {
  const { node, mode: configured } = await readNode(withNode(given, options.node ?? ''))
  const nodeName = nodeNameOf(node.config)
  const own = node.objects.nodes.find(({ name }) => name === nodeName)?.addresses ?? []
  const addresses = own.filter(({ type }) => type.endsWith('IP')).map(({ address }) => address)
  const cluster = { ...node, machineAddresses: ['127.0.0.1', '::1', ...addresses] }
  const mode = options.mode ?? configured
  const previews: Preview[] = []
  for (const family of familiesOf(options, [4, 6])) {
    previews.push(await previewMode(cluster, { mode, family, kernel: 'empty', onProblem: warn }))
  }
  const problem = previews.find((preview) => preview.problem !== undefined)?.problem
  if (problem !== undefined) throw new Error(problem)
  process.stdout.write(formatScripts(previews, options.for))
  for (const remark of new Set(previews.flatMap(({ dryRun }) => dryRun!.remarks))) warn(remark)
  return exitStatus.nothingToDo
}

async function readNode(given: Given): Promise<{ readonly node: NodeOfCluster; readonly mode: string }> {
  const options = await loadQuietly(given, warn)
  const objects = await readObjects(options, { pods: 'without pods', warn })
  return { node: { source: objects.source, config: options.config, objects }, mode: options.config.mode }
}

function familiesOf({ family }: PreviewOptions, all: readonly Family[]): readonly Family[] {
  return family === undefined ? all : [family === '4' ? 4 : 6]
}

function warn(message: string): void {
  process.stderr.write(`kube-proxy: ${message}\n`)
}
