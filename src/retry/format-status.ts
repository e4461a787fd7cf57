// What /statusz says about retries, for people.

import { joinHostPort } from '../lib/ip.ts'
import type { Suspect } from './suspects.ts'

export interface RetryState {
  covered(): number
  suspects(): readonly Suspect[]
}

/** Empty when no service port is covered and nothing is suspected. */
export function formatRetryStatus(state: RetryState, nowMs: number): string {
  const covered = state.covered()
  const suspects = state.suspects()
  if (covered === 0 && suspects.length === 0) return ''
  return [`Connect retry: service ports=${covered}`, ...suspects.map((each) => `  ${formatSuspect(each, nowMs)}`)].join(
    '\n',
  )
}

/** `10.1.0.7:8080 ejected for 12s (refused), probes=4, next in 8s` */
export function formatSuspect(suspect: Suspect, nowMs: number): string {
  const { ip, port, state, sinceMs, reason, failedProbes, nextProbeMs } = suspect
  const since = `${joinHostPort(ip, port)} ${state} for ${seconds(nowMs - sinceMs)} (${reason})`
  if (state === 'suspected') return since
  const next = nextProbeMs === undefined ? '' : `, next in ${seconds(nextProbeMs - nowMs)}`
  return `${since}, probes=${failedProbes}${next}`
}

function seconds(ms: number): string {
  return `${Math.max(0, Math.round(ms / 1000))}s`
}
