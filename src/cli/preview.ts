// `kube-proxy plan` and `kube-proxy render`.

import type { Family } from '../lib/ip.ts'
import { countCommands, formatPlan, formatPlanJson, formatScripts } from '../diagnose/preview/format.ts'
import { readCluster, readRunningProxy, type Cluster } from '../diagnose/preview/read-cluster.ts'
import { previewMode, type Preview } from '../diagnose/preview/rehearse.ts'
import { hasIpv6 } from '../compose/families.ts'
import { modeNames } from '../modes/all.ts'
import type { ScriptReader } from '../modes/rehearsal.ts'
import { loadQuietly, withNode } from './load-options.ts'

const exitStatus = { nothingToDo: 0, failure: 1, changes: 2 } as const
const READ_MS = 30_000

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
  const cluster = given.size === 0 ? await readRunningProxy(socket) : await readFrom(given, 'this')
  const shown = options.mode ?? cluster.mode
  const previews: Preview[] = []
  for (const mode of modeNames) {
    for (const family of familiesOf(options, hasIpv6() ? [4, 6] : [4])) {
      previews.push(await previewMode(cluster, { mode, family, kernel: 'this machine', onProblem: () => {} }))
    }
  }
  const { source, nodeName } = cluster
  const plan = { source, nodeName, shown, previews }
  const colour = process.stdout.isTTY && process.env['NO_COLOR'] === undefined
  process.stdout.write(output === 'json' ? formatPlanJson(plan) : formatPlan({ ...plan, colour, limit }))
  const ofMode = previews.filter(({ mode }) => mode === shown)
  if (ofMode.some(({ rehearsal }) => rehearsal === undefined)) return exitStatus.failure
  const isDone = ofMode.every(({ rehearsal }) => countCommands(rehearsal!) === 0)
  return isDone ? exitStatus.nothingToDo : exitStatus.changes
}

export async function runRenderCommand(options: RenderOptions, given: Given): Promise<number> {
  const cluster = await readFrom(withNode(given, options.node ?? ''), 'of the Node')
  const mode = options.mode ?? cluster.mode
  const previews: Preview[] = []
  for (const family of familiesOf(options, [4, 6])) {
    previews.push(await previewMode(cluster, { mode, family, kernel: 'empty', onProblem: warn }))
  }
  const problem = previews.find((preview) => preview.problem !== undefined)?.problem
  if (problem !== undefined) throw new Error(problem)
  process.stdout.write(formatScripts(previews, options.for))
  for (const remark of new Set(previews.flatMap(({ rehearsal }) => rehearsal!.remarks))) warn(remark)
  return exitStatus.nothingToDo
}

async function readFrom(given: Given, machine: 'this' | 'of the Node'): Promise<Cluster> {
  return readCluster({ run: await loadQuietly(given, warn), machine, withinMs: READ_MS, onWarning: warn })
}

function familiesOf({ family }: PreviewOptions, all: readonly Family[]): readonly Family[] {
  return family === undefined ? all : [family === '4' ? 4 : 6]
}

function warn(message: string): void {
  process.stderr.write(`kube-proxy: ${message}\n`)
}
