// Connects socket balancing to the rest of the proxy. Its code is loaded only where it is configured.

import type { SocketBalancing } from '../connect/socket-balancing.ts'
import { systemClock } from '../lib/clock.ts'
import type { Family } from '../lib/ip.ts'
import { silentLogger, type Logger } from '../lib/log.ts'
import type { Metrics } from '../metrics/metrics.ts'
import type { ServicePortView } from '../model/types.ts'
import type { Mode } from '../modes/contract.ts'
import { subscriberFailures, type SubscriberFailures } from '../reconcile/subscriber-failures.ts'

export interface SocketBalancingSetup {
  readonly families: readonly Family[]
  readonly views: (family: Family) => Iterable<ServicePortView>
  readonly machineAddresses: () => readonly string[]
  readonly opensLoopback: boolean
  readonly metrics: Metrics
  readonly log: Logger
}

export type OpenSocketBalancing = (options: SocketBalancingSetup) => SocketBalancing

/** Undefined where it is not configured, or where the mode in force chooses backends in a way of its own. */
export async function loadSocketBalancing(
  scope: string,
  { name, choosesAtRandom }: Mode,
  log: Logger,
): Promise<OpenSocketBalancing | undefined> {
  if (scope === '') return undefined
  if (!choosesAtRandom) {
    log.warn('Sockets do not choose endpoints: the mode has its own way to choose', { mode: name })
    return undefined
  }
  const loaded = await import('../connect/socket-balancing.ts')
  return ({ families, metrics, log: to, ...rest }) =>
    new loaded.SocketBalancing({
      ...rest,
      scope,
      families,
      // It logs its errors itself, each once.
      ...everyOf(
        families.map((family) =>
          subscriberFailures({ metrics, clock: systemClock, log: silentLogger }, 'socket_balancing', `IPv${family}`),
        ),
      ),
      onFrontends: (family, count) => metrics.connectFrontends.with(`IPv${family}`).set(count),
      clock: systemClock,
      log: to,
    })
}

function everyOf(
  each: readonly SubscriberFailures[],
): Pick<SubscriberFailures, 'onMended'> & { onFailed: (error: unknown) => void } {
  return {
    onFailed: (error) => each.forEach(({ onFailed }) => onFailed(error)),
    onMended: () => each.forEach(({ onMended }) => onMended()),
  }
}
