// Reports failures of followers: metrics count each one, the log has at most one a minute.

import type { Clock } from '../lib/clock.ts'
import type { Logger } from '../lib/log.ts'
import type { Metrics } from '../metrics/metrics.ts'
import type { IpFamilyName } from '../serve/proxy-health.ts'

/** The label in the metrics. */
export type FollowerName =
  | 'affinity'
  | 'changes'
  | 'socket_balancing'
  | 'cleanup'
  | 'connect_retry'
  | 'ended_connections'
  | 'health_ports'
  | 'metrics'
  | 'other_modes'
  | 'rest'
  | 'udp_flows'

export interface FollowerFailures {
  /** Without a time, the next attempt comes with the next sync. */
  readonly onFailed: (error: unknown, againInMs?: number) => void
  readonly onMended: () => void
}

export interface FollowerFailuresOptions {
  readonly metrics: Pick<Metrics, 'followerFailures' | 'followerBehind'>
  readonly clock: Clock
  readonly log: Logger
}

/** A follower logs one failure in this time. */
const LOG_MS = 60_000

export function followerFailures(
  { metrics, clock, log }: FollowerFailuresOptions,
  follower: FollowerName,
  ipFamily: IpFamilyName,
): FollowerFailures {
  let loggedMs = -Infinity
  let isLogged = false
  let isBehind = false
  return {
    onFailed(error, againInMs) {
      isBehind = true
      metrics.followerFailures.with(ipFamily, follower).inc()
      metrics.followerBehind.with(ipFamily, follower).set(1)
      if (clock.monotonicNow() < loggedMs + LOG_MS) return
      loggedMs = clock.monotonicNow()
      isLogged = true
      log.error(error, 'The rules are in force; something that follows them failed', { ipFamily, follower, againInMs })
    },
    onMended() {
      if (!isBehind) return
      isBehind = false
      metrics.followerBehind.with(ipFamily, follower).set(0)
      if (isLogged) log.info('What had failed after the rules is done', { ipFamily, follower })
      isLogged = false
    },
  }
}
