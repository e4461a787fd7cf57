// What a proxy says of itself, as one object and as lines.

import type { MetricsAnswer } from '../serve/control/metrics.ts'
import type { StateAnswer, Unheard } from '../serve/control/state.ts'

export interface ProxyStatus {
  readonly version: string
  readonly nodeName: string
  readonly mode: string
  /** The configured mode, where it is another. */
  readonly asked?: string | undefined
  readonly startedMs: number
  readonly nowMs: number
  /** Since when the kernel holds what was decided, in all IP families; null: it does not. */
  readonly inSyncSinceMs: number | null
  /** Why not, by IP family. */
  readonly problems: readonly string[]
  /** How often another program had changed the rules. */
  readonly driftTimes: number
  /** Service ports whose rules the kernel refused. */
  readonly refused: number
  /** Backends that get no new connections until they answer again. */
  readonly ejected: readonly string[]
  /** From the first event to the kernel's acknowledgement: the upper bound of the slowest change's bucket; null: none yet. */
  readonly slowestChangeSeconds: number | null
}

export function planStatus(state: StateAnswer, { metrics }: MetricsAnswer): ProxyStatus {
  const { version, nodeName, mode, startedMs, nowMs, families, ejected = [], unheard = [], source } = state
  const ofFamilies = families.flatMap(({ family, sync, drift }) => {
    if (!sync.hasBegun) return [`IPv${family}: not all objects have been listed yet`]
    if (sync.lastSyncMs === undefined) return [`IPv${family}: nothing is programmed yet`]
    return drift.holds ? [] : [`IPv${family}: ${drift.reason ?? 'the kernel does not hold what was decided'}`]
  })
  const problems = [...ofFamilies, ...unheard.map((each) => formatUnheard(each, source))]
  return {
    version,
    nodeName,
    mode: mode.name,
    ...(mode.asked === '' || mode.asked === mode.name ? {} : { asked: mode.asked }),
    startedMs,
    nowMs,
    inSyncSinceMs: problems.length > 0 ? null : Math.max(...families.map(({ drift }) => drift.sinceMs)),
    problems,
    driftTimes: families.reduce((sum, { drift }) => sum + drift.times, 0),
    refused: families.reduce((sum, { sync }) => sum + sync.refused, 0),
    ejected: ejected.map(({ backend }) => backend),
    slowestChangeSeconds: slowestOf(metrics),
  }
}

/** Since when nothing is heard of it, and why. */
export function formatUnheard({ what, sinceMs, error }: Unheard, source: string): string {
  return `nothing is heard of ${what} from ${source} since ${new Date(sinceMs).toISOString()}: ${error}`
}

/** The bound of the highest bucket that has anything. */
export function slowestOf(metrics: string): number | null {
  let slowest: number | null = null
  const before = new Map<string, number>()
  for (const [, family, bound, count] of metrics.matchAll(
    /^kubeproxyts_change_duration_seconds_bucket\{ip_family="([^"]*)",le="([^"]*)"\} (\d+)/gm,
  )) {
    const isIn = Number(count) > (before.get(family!) ?? 0)
    before.set(family!, Number(count))
    if (isIn) slowest = Math.max(slowest ?? 0, bound === '+Inf' ? Infinity : Number(bound))
  }
  return slowest
}

export function formatStatus(status: ProxyStatus): string {
  const { version, nodeName, mode, asked, startedMs, nowMs, inSyncSinceMs, problems, ejected } = status
  const rows = [
    ['node', nodeName],
    ['version', version],
    ['mode', asked === undefined ? mode : `${mode} (configured: ${asked})`],
    ['runs for', formatAge(nowMs - startedMs)],
    ['in sync', inSyncSinceMs === null ? 'NO' : `for ${formatAge(nowMs - inSyncSinceMs)}`],
    ...problems.map((problem) => ['', problem]),
    ['drift', status.driftTimes === 0 ? 'none' : `${status.driftTimes} times, restored`],
    ['refused', `${status.refused} service ports`],
    ['ejected', ejected.length === 0 ? 'none' : ejected.join(', ')],
    ['slowest change', formatSlowest(status.slowestChangeSeconds)],
  ]
  return rows.map(([name = '', value = '']) => `${name.padEnd(15)} ${value}\n`).join('')
}

export function formatSlowest(seconds: number | null): string {
  if (seconds === null) return '-'
  if (seconds === Infinity) return 'more than is counted'
  return seconds < 1 ? `under ${Number((seconds * 1000).toPrecision(3))} ms` : `under ${seconds} s`
}

export function formatAge(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000))
  if (seconds < 120) return `${seconds}s`
  if (seconds < 2 * 3600) return `${Math.floor(seconds / 60)}m`
  if (seconds < 48 * 3600) return `${Math.floor(seconds / 3600)}h`
  return `${Math.floor(seconds / 86_400)}d`
}
