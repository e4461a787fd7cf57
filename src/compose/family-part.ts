// What one IP family of a proxy has of its own: a pipeline, and the health check ports of its services.

import { conntrackFlows } from '../conntrack/driver.ts'
import { ConnectionEnder } from '../ends/connection-ender.ts'
import { endsKernel } from '../ends/kernel.ts'
import { anEvent } from '../kube/event-kinds.ts'
import type { EventRecorder } from '../kube/events.ts'
import { systemClock } from '../lib/clock.ts'
import { closeAll } from '../lib/close-all.ts'
import type { Logger } from '../lib/log.ts'
import type { Balance } from '../model/balance.ts'
import type { RetryScope } from '../model/connect-retry.ts'
import type { ProblemLog } from '../model/problems.ts'
import { ServiceModel } from '../model/service-model.ts'
import type { HealthCheck, NodeView, ServicePortView } from '../model/types.ts'
import type { ProxyHealth } from '../serve/proxy-health.ts'
import { type HealthAddresses, ServiceHealth } from '../serve/service-health.ts'
import type { Periods } from '../reconcile/pacing.ts'
import { FamilyPipeline } from '../reconcile/family-pipeline.ts'
import { FlowCleaner } from '../reconcile/flow-cleaner.ts'
import { subscriberFailures } from '../reconcile/subscriber-failures.ts'
import type { Subscriber } from '../reconcile/subscribers.ts'
import type { Metrics } from '../metrics/metrics.ts'
import type { RunningMode } from '../modes/contract.ts'

export interface FamilyPartOptions {
  readonly node: NodeView
  readonly mode: RunningMode
  /** The ways to choose a backend that the mode has. */
  readonly balances: readonly Balance[]
  /** Whether the mode can limit connections on this machine. */
  readonly canLimit: () => boolean
  readonly periods: Periods
  readonly allowExternalIPs: boolean
  readonly machineAddresses: () => readonly string[]
  readonly problems: ProblemLog
  readonly metrics: Metrics
  readonly health: ProxyHealth
  readonly events: Pick<EventRecorder, 'record'>
  readonly log: Logger
  /** Whether services without a setting of their own have connect retry. */
  readonly connectRetry: RetryScope
  /** Whether the kernel carries connections: others can be ended by it alone. */
  readonly endsConnections: boolean
  /** Whether a new connection is compared with one frontend after the other. */
  readonly comparesEach: boolean
  /** Subscribers of each write, besides the flow cleaner and the health check ports. */
  readonly subscribers: readonly Subscriber[]
}

export class FamilyPart {
  readonly pipeline: FamilyPipeline
  readonly #serviceHealth: ServiceHealth
  readonly #flows: FlowCleaner
  /** In modes in which the kernel carries connections. */
  readonly #ender: ConnectionEnder | undefined
  /** The services that the health checks were made from. */
  #syncedChecks: readonly HealthCheck[] | undefined

  constructor(options: FamilyPartOptions) {
    const { node, metrics, health, log, periods, problems, allowExternalIPs } = options
    const clock = systemClock
    this.#serviceHealth = openServiceHealth(options)
    this.#flows = openFlowCleaner(options, () => this.pipeline.views())
    this.#ender = options.endsConnections ? openConnectionEnder(options) : undefined
    this.pipeline = new FamilyPipeline({
      node,
      model: new ServiceModel({
        node,
        problems,
        allowExternalIPs,
        balances: options.balances,
        canLimit: options.canLimit,
        connectRetry: options.connectRetry,
        endsConnections: options.endsConnections,
        comparesEach: options.comparesEach,
        startedMs: clock.now(),
      }),
      programmer: openProgrammer(options),
      metrics,
      health,
      periods,
      sharedTables: options.mode.sharedTables,
      clock,
      log,
      subscribers: [
        { name: 'udp_flows', follow: (applied) => this.#flows.follow(applied) },
        { name: 'ended_connections', follow: ({ node: now, changes }) => this.#ender?.follow(now, changes) },
        { name: 'health_ports', follow: () => this.#syncServiceHealth() },
        ...options.subscribers,
      ],
      onStaleEntries: () => this.#flows.staleEntriesDeleted(),
    })
  }

  setNode(node: NodeView): void {
    this.pipeline.setNode(node)
    this.#serviceHealth.setAddresses(healthAddresses(node))
  }

  stop(): Promise<void> {
    return closeAll(
      () => this.pipeline.stop(),
      () => this.#flows.stop(),
      () => this.#ender?.stop(),
      () => this.#serviceHealth.close(),
    )
  }

  #syncServiceHealth(): void {
    const checks = this.pipeline.model.healthChecks()
    if (checks === this.#syncedChecks) return
    const nameOf = (check: (typeof checks)[number]) => `${check.namespace}/${check.service}`
    this.#serviceHealth.syncServices(new Map(checks.map((check) => [nameOf(check), check.port])))
    this.#serviceHealth.syncEndpoints(new Map(checks.map((check) => [nameOf(check), check.localEndpoints])))
    this.#syncedChecks = checks
  }
}

function openServiceHealth({ node, health, events, metrics, log }: FamilyPartOptions): ServiceHealth {
  return new ServiceHealth({
    family: node.family,
    addresses: healthAddresses(node),
    proxyHealthy: () => health.health().healthy,
    onRefused: ({ service, port, error }) => {
      metrics.subscriberFailures.with(`IPv${node.family}`, 'health_ports').inc()
      const what = `healthcheck ${JSON.stringify(service)} on port ${port}`
      const note = `node ${node.nodeName} failed to start ${what}: ${error.message}`
      events.record(anEvent('FailedToStartServiceHealthcheck', note, service))
    },
    clock: systemClock,
    log,
  })
}

function openProgrammer({
  node,
  mode,
  metrics,
  events,
  log,
}: FamilyPartOptions): ReturnType<RunningMode['programmer']> {
  return mode.programmer(node.family, {
    metrics,
    onRefused: (service, reason) => {
      metrics.refusals.with(`IPv${node.family}`).inc()
      const note = `node ${node.nodeName} cannot program service port ${service}: ${reason}`
      events.record(anEvent('FailedToProgramService', note))
    },
    affinity: subscriberFailures({ metrics, clock: systemClock, log }, 'affinity', `IPv${node.family}`),
  })
}

function openFlowCleaner(
  { node, mode, metrics, log, machineAddresses }: FamilyPartOptions,
  views: () => Iterable<ServicePortView>,
): FlowCleaner {
  const { flowTargets } = mode
  return new FlowCleaner({
    table: conntrackFlows,
    metrics,
    clock: systemClock,
    log,
    failures: subscriberFailures({ metrics, clock: systemClock, log }, 'udp_flows', `IPv${node.family}`),
    machineAddresses,
    views,
    targets: flowTargets && ((view) => flowTargets(node.family, view)),
  })
}

function openConnectionEnder({ node, metrics, log, machineAddresses }: FamilyPartOptions): ConnectionEnder {
  const ipFamily = `IPv${node.family}` as const
  return new ConnectionEnder({
    kernel: endsKernel,
    machineAddresses,
    onEnded: (connections) => {
      metrics.endedConnections.with(ipFamily).inc(connections)
      log.v(2)?.info('Reset connections to removed endpoints', { ipFamily, connections })
    },
    failures: subscriberFailures({ metrics, clock: systemClock, log }, 'ended_connections', ipFamily),
    clock: systemClock,
  })
}

function healthAddresses({ nodePortAddresses }: NodeView): HealthAddresses {
  return nodePortAddresses.kind === 'all' ? 'all' : nodePortAddresses.addresses
}
