// Retries of connections, put together with the rest of the proxy.

import { anEvent } from '../kube/event-kinds.ts'
import type { EventRecorder } from '../kube/events.ts'
import { systemClock } from '../lib/clock.ts'
import { joinHostPort, type Family } from '../lib/ip.ts'
import type { Logger } from '../lib/log.ts'
import type { Metrics } from '../metrics/metrics.ts'
import { serviceOf } from '../model/service-model.ts'
import type { Mode, RunningMode } from '../modes/contract.ts'
import { ConnectRetry, type RetryCounts } from '../retry/connect-retry.ts'
import type { FamilyPipeline } from './family-pipeline.ts'

export interface RetriesOptions {
  readonly families: readonly Family[]
  readonly mode: Mode
  readonly running: RunningMode
  readonly nodeName: string
  readonly machineAddresses: () => readonly string[]
  readonly pipeline: (family: Family) => FamilyPipeline | undefined
  readonly metrics: Metrics
  readonly events: Pick<EventRecorder, 'record'>
  readonly log: Logger
}

export function openConnectRetry(options: RetriesOptions): ConnectRetry {
  const { families, mode, running, nodeName, machineAddresses, pipeline, metrics, events, log } = options
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
      // The client that found it out sends its next SYN in less than a second.
      of.changed('urgent')
    },
    onSuspect: ({ ip, port, reason }, change, ports) => {
      const backend = joinHostPort(ip, port)
      const note =
        change === 'ejected'
          ? `node ${nodeName} sends no new connections to ${backend}: a client failed there (${reason}), and so did this node`
          : `node ${nodeName} sends connections to ${backend} again: it answers`
      const reasonOf = change === 'ejected' ? 'BackendEjected' : 'BackendReturned'
      for (const service of new Set(ports.map(serviceOf))) events.record(anEvent(reasonOf, note, service))
    },
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
