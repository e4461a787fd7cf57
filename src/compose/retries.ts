// Connects connect retry to the rest of the proxy.

import { anEvent } from '../kube/event-kinds.ts'
import type { EventRecorder } from '../kube/events.ts'
import { systemClock } from '../lib/clock.ts'
import { joinHostPort, type Family } from '../lib/ip.ts'
import type { Logger } from '../lib/log.ts'
import type { Metrics } from '../metrics/metrics.ts'
import { serviceOf } from '../model/service-model.ts'
import type { Mode, RunningMode } from '../modes/contract.ts'
import { ConnectRetry, type RetryCounts } from '../retry/connect-retry.ts'
import type { FamilyPipeline } from '../reconcile/family-pipeline.ts'
import { subscriberFailures } from '../reconcile/subscriber-failures.ts'

/** The most services of one backend that an Event names. */
const MOST_NAMED = 3

export interface RetriesOptions {
  readonly families: readonly Family[]
  readonly mode: Mode
  readonly running: RunningMode
  readonly machineAddresses: () => readonly string[]
  readonly pipeline: (family: Family) => FamilyPipeline | undefined
  readonly metrics: Metrics
  readonly events: Pick<EventRecorder, 'record'>
  readonly log: Logger
}

export function openConnectRetry(options: RetriesOptions): ConnectRetry {
  const { families, mode, running, machineAddresses, pipeline, metrics, events, log } = options
  return new ConnectRetry({
    families,
    where: mode.retries,
    machineAddresses,
    failing: running.failing,
    onEjections: (family, ejections, ports) => {
      metrics.retryEjectedNow.with(`IPv${family}`).set(ejections.size)
      const of = pipeline(family)
      if (of === undefined) return
      of.model.setEjections(ejections, ports)
      // Urgent: the client that failed sends its next SYN in less than a second.
      of.changed('urgent')
    },
    onSuspect: ({ ip, port, reason }, change, ports) => {
      const backend = `${joinHostPort(ip, port)} (${[...new Set(ports.map(serviceOf))].slice(0, MOST_NAMED).join(', ')})`
      const note =
        change === 'ejected'
          ? `no new connections go to ${backend}: a client failed there (${reason}), and so did this node`
          : `connections go to ${backend} again: it answers`
      // An Event of the node, not of the Service: whoever can write EndpointSlices must not learn which addresses this node can reach.
      events.record(anEvent(change === 'ejected' ? 'BackendEjected' : 'BackendReturned', note))
    },
    onTable: (family) => subscriberFailures({ metrics, clock: systemClock, log }, 'connect_retry', `IPv${family}`),
    counts: countsOf(metrics),
    clock: systemClock,
    log,
  })
}

function countsOf(metrics: Metrics): RetryCounts {
  return {
    changed(change, family, reason) {
      const labels = [`IPv${family}`, reason] as const
      if (change === 'suspected') metrics.retrySuspected.with(...labels).inc()
      if (change === 'ejected') metrics.retryEjected.with(...labels).inc()
      if (change === 'returned') metrics.retryReturned.with(...labels).inc()
    },
    retried: (family, reason, connections) => metrics.retryRetried.with(`IPv${family}`, reason).inc(connections),
    missed: () => metrics.retryMissed.with().inc(),
  }
}
