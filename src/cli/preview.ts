// `kube-proxy plan` and `kube-proxy render`: the command lines, as functions.

import type { RunOptions } from '../config/run-options.ts'
import { messageOf } from '../lib/errors.ts'
import type { Family } from '../lib/ip.ts'
import { silentLogger, type LogSettings } from '../lib/log.ts'
import { countCommands, formatPlan, formatPlanJson, formatScripts } from '../diagnose/preview/format.ts'
import { readCluster, readRunningProxy, type Cluster } from '../diagnose/preview/read-cluster.ts'
import { previewMode, type Preview } from '../diagnose/preview/rehearse.ts'
import { hasIpv6 } from '../compose/families.ts'
import { loadRunOptions } from './load-options.ts'
import { parseFlags } from './parse-flags.ts'
import { countOf, familyNames, modeNames, oneOf, programNames, takeFlags } from './preview-flags.ts'
import { formatPlanHelp, formatRenderHelp } from './preview-help.ts'

const exitStatus = { nothingToDo: 0, failure: 1, changes: 2 } as const
const READ_MS = 30_000

export async function runPlanCommand(argv: readonly string[]): Promise<number> {
  return guarded('plan', argv, formatPlanHelp, async () => {
    const { own, rest } = takeFlags(argv, ['mode', 'family', 'limit', 'output', 'control-socket'])
    const output = oneOf(own, 'output', ['text', 'json']) ?? 'text'
    const limit = countOf(own, 'limit', 100)
    const asked = oneOf(own, 'mode', modeNames)
    const families = familiesOf(own)
    const cluster =
      rest.length === 0 ? await readRunningProxy(own.get('control-socket') ?? '') : await readFrom(rest, 'this')
    const shown = asked ?? cluster.mode
    const previews: Preview[] = []
    for (const mode of modeNames) {
      for (const family of families) {
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
  })
}

export async function runRenderCommand(argv: readonly string[]): Promise<number> {
  return guarded('render', argv, formatRenderHelp, async () => {
    const { own, rest } = takeFlags(argv, ['mode', 'family', 'node', 'for'])
    const node = own.get('node')
    const only = oneOf(own, 'for', programNames)
    const asked = oneOf(own, 'mode', modeNames)
    const cluster = await readFrom(node === undefined ? rest : [...rest, `--hostname-override=${node}`], 'of the Node')
    const mode = asked ?? cluster.mode
    const previews: Preview[] = []
    for (const family of own.has('family') ? familiesOf(own) : ([4, 6] as const)) {
      previews.push(await previewMode(cluster, { mode, family, kernel: 'empty', onProblem: warn }))
    }
    const problem = previews.find((preview) => preview.problem !== undefined)?.problem
    if (problem !== undefined) throw new Error(problem)
    process.stdout.write(formatScripts(previews, only))
    for (const remark of new Set(previews.flatMap(({ rehearsal }) => rehearsal!.remarks))) warn(remark)
    return exitStatus.nothingToDo
  })
}

async function readFrom(flags: readonly string[], machine: 'this' | 'of the Node'): Promise<Cluster> {
  const { given, errors } = parseFlags(flags)
  if (errors.length > 0) throw new RangeError(errors.join('; '))
  const settings: LogSettings = { format: () => '', sink: () => {}, verbosity: 0, now: () => 0 }
  const log = { ...silentLogger, warn }
  const run: RunOptions = await loadRunOptions(given, { log, settings, apply: () => {} })
  return readCluster({ run, machine, withinMs: READ_MS, onWarning: warn })
}

function familiesOf(own: ReadonlyMap<string, string>): readonly Family[] {
  const only = oneOf(own, 'family', familyNames)
  if (only !== undefined) return [only === '4' ? 4 : 6]
  return hasIpv6() ? [4, 6] : [4]
}

function warn(message: string): void {
  process.stderr.write(`kube-proxy: ${message}\n`)
}

async function guarded(
  command: string,
  argv: readonly string[],
  help: () => string,
  work: () => Promise<number>,
): Promise<number> {
  if (argv.some((arg) => arg === '--help' || arg === '-h')) {
    process.stdout.write(help())
    return exitStatus.nothingToDo
  }
  try {
    return await work()
  } catch (error) {
    warn(messageOf(error))
    if (error instanceof RangeError) process.stderr.write(`See kube-proxy ${command} --help\n`)
    return exitStatus.failure
  }
}
