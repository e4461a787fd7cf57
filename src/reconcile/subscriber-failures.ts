// Reports failures of subscribers: metrics count each one, the log has at most one a minute.

import type { Clock } from '../lib/clock.ts'
import type { Logger } from '../lib/log.ts'
import type { Metrics } from '../metrics/metrics.ts'
import type { IpFamilyName } from '../serve/proxy-health.ts'

/** The label in the metrics. */
export type SubscriberName =
  | 'affinity'
  | 'changes'
  | 'socket_balancing'
  | 'least_connections'
  | 'cleanup'
  | 'connect_retry'
  | 'ended_connections'
  | 'health_ports'
  | 'metrics'
  | 'other_modes'
  | 'rest'
  | 'udp_flows'

export interface SubscriberFailures {
  /** Without a time, the next attempt comes with the next sync. */
  readonly onFailed: (error: unknown, againInMs?: number) => void
  readonly onMended: () => void
}

export interface SubscriberFailuresOptions {
  readonly metrics: Pick<Metrics, 'subscriberFailures' | 'subscriberBehind'>
  readonly clock: Clock
  readonly log: Logger
}

/** A subscriber logs one failure in this time. */
const LOG_MS = 60_000

export function subscriberFailures(
  { metrics, clock, log }: SubscriberFailuresOptions,
  subscriber: SubscriberName,
  ipFamily: IpFamilyName,
): SubscriberFailures {
  let loggedMs = -Infinity
  let isLogged = false
  let isBehind = false
  return {
    onFailed(error, againInMs) {
      isBehind = true
      metrics.subscriberFailures.with(ipFamily, subscriber).inc()
      metrics.subscriberBehind.with(ipFamily, subscriber).set(1)
      if (clock.monotonicNow() < loggedMs + LOG_MS) return
      loggedMs = clock.monotonicNow()
      isLogged = true
      log.error(error, 'The rules are in force; something that follows them failed', {
        ipFamily,
        subscriber,
        againInMs,
      })
    },
    onMended() {
      if (!isBehind) return
      isBehind = false
      metrics.subscriberBehind.with(ipFamily, subscriber).set(0)
      if (isLogged) log.info('What had failed after the rules is done', { ipFamily, subscriber })
      isLogged = false
    },
  }
}
