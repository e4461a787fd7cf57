// Answers questions about a running proxy: those of commands over the control socket, and /statusz.

import { encodeToObject } from '../config/encode.ts'
import type { RunOptions } from '../config/run-options.ts'
import type { KubeProxyConfiguration, LoadedConfiguration } from '../config/types.ts'
import { parseFlowLogTarget } from '../flows/flow-log-target.ts'
import { listenPath } from '../serve/control/path.ts'
import type { MetricsAnswer } from '../serve/control/metrics.ts'
import { allowArguments, type Question } from '../serve/control/questions.ts'
import { ControlServer } from '../serve/control/server.ts'
import type { StateToSend, Unheard } from '../serve/control/state.ts'
import { systemClock } from '../lib/clock.ts'
import { closeAll } from '../lib/close-all.ts'
import type { ApiClient } from '../kube/api-client.ts'
import type { Metrics } from '../metrics/metrics.ts'
import { balancesOf } from '../model/balance.ts'
import type { LeastConnectionsCounting } from './least-connections.ts'
import type { SocketBalancing } from '../connect/socket-balancing.ts'
import type { ConnectRetry } from '../retry/connect-retry.ts'
import { formatRetryStatus } from '../retry/format-status.ts'
import { affinityQuestion } from './affinity-question.ts'
import { countingChosen } from './count-chosen.ts'
import { formatDrift } from '../reconcile/drift.ts'
import type { FamilyPipeline } from '../reconcile/family-pipeline.ts'
import { Flows } from './flows.ts'
import type { NodeState } from './node-state.ts'
import type { ModeInForce } from './open-mode.ts'
import { describeEjected, proxyQuestions } from './questions.ts'
import type { SelfCheck } from './self-check.ts'
import { Timeline } from './timeline.ts'
import { Traffic } from './traffic.ts'
import { TrafficMetrics } from './traffic-metrics.ts'

export interface AnswersOptions {
  readonly run: RunOptions
  /** The configuration in force. */
  readonly loaded: () => LoadedConfiguration
  readonly nodeName: string
  /** Where objects come from, as /statusz shows it. */
  readonly source: string
  /** Undefined without an API server. */
  readonly api: ApiClient | undefined
  /** Milliseconds since 1970. */
  readonly startedMs: number
  readonly pipelines: readonly FamilyPipeline[]
  readonly state: NodeState
  readonly unheard: ReadonlyMap<string, Unheard>
  readonly inForce: ModeInForce
  readonly retry: ConnectRetry
  readonly socketBalancing: Pick<SocketBalancing, 'status' | 'cgroup' | 'counts'> | undefined
  readonly leastConnections: Pick<LeastConnectionsCounting, 'status'>
  readonly metrics: Metrics
  readonly selfCheck: SelfCheck | undefined
}

export class Answers {
  readonly #options: AnswersOptions
  readonly #traffic: Traffic
  readonly #trafficMetrics: TrafficMetrics
  readonly #timeline: Timeline
  readonly #flows: Flows
  #control: ControlServer | undefined

  constructor(options: AnswersOptions) {
    const { pipelines, inForce, nodeName, run, socketBalancing } = options
    const { traffic } = inForce.running
    this.#options = options
    this.#traffic = new Traffic({
      families: pipelines.map((pipeline) => ({ family: pipeline.node.family, views: () => pipeline.model.views() })),
      about: () => ({
        mode: inForce.mode.name,
        nodeName,
        ejected: this.#ejected().map(({ backend }) => backend),
        without: socketBalancing?.cgroup,
        balances: Object.fromEntries(pipelines.flatMap(({ model }) => [...balancesOf(model.views())])),
      }),
      open: traffic && socketBalancing ? countingChosen(traffic, socketBalancing) : traffic,
      clock: systemClock,
      log: run.log,
    })
    this.#trafficMetrics = new TrafficMetrics({
      traffic: this.#traffic,
      servicePorts: () => pipelines.flatMap(({ model }) => [...model.trafficMetricsSettings()]),
      metrics: options.metrics,
      clock: systemClock,
      log: run.log,
    })
    this.#timeline = new Timeline({
      recorders: pipelines.map(({ recorder }) => recorder),
      about: () => ({ mode: inForce.mode.name, nodeName }),
      clock: systemClock,
    })
    this.#flows = new Flows({
      views: () => pipelines.flatMap(({ model }) => [...model.views()]),
      mode: inForce.mode,
      nodeName,
      state: options.state,
      api: options.api,
      socketBalancing: options.socketBalancing?.cgroup,
      target: parseFlowLogTarget(run.flowLog),
      version: run.version,
      clock: systemClock,
      log: run.log,
    })
  }

  /** What the configuration says of it. */
  apply({ trafficMetrics }: KubeProxyConfiguration): void {
    this.#trafficMetrics.show(trafficMetrics)
  }

  /** Listens at the control socket, unless `--control-socket` says not to, and begins the flow log, if there is to be one. */
  open(): void {
    const { run, pipelines } = this.#options
    this.#flows.start().catch((error: unknown) => run.log.error(error, 'Cannot write the flow log'))
    const path = listenPath(run.controlSocket)
    if (path === undefined) return
    const asked = proxyQuestions({ pipelines, about: () => this.#describe() })
    const affinity = affinityQuestion({ pipelines, remembered: this.#options.inForce.running.remembered })
    const questions = [
      ...asked,
      this.#traffic.question,
      affinity,
      this.#timeline.question,
      this.#flows.question,
      this.#metricsQuestion,
    ]
    this.#control = new ControlServer({ path, questions, clock: systemClock, log: run.log })
  }

  readonly #metricsQuestion: Question = {
    name: 'metrics',
    what: 'what /metrics and /statusz say',
    answer: async (query): Promise<MetricsAnswer> => {
      allowArguments(query)
      const parts = await this.#options.metrics.page()
      return { metrics: Buffer.concat(parts).toString(), status: this.status() }
    },
  }

  /** Lines for people. */
  status(): string {
    const { pipelines, retry, socketBalancing, leastConnections, selfCheck, inForce } = this.#options
    const drift = pipelines.map(({ node, driftState }) => formatDrift(`IPv${node.family}`, driftState))
    const retries = formatRetryStatus(retry, systemClock.now())
    const parts = [
      selfCheck?.status(),
      drift.join('\n'),
      inForce.running.status?.(),
      retries,
      socketBalancing?.status(),
      leastConnections.status(),
    ]
    return parts.filter(Boolean).join('\n\n')
  }

  close(): Promise<void> {
    return closeAll(
      () => this.#control?.close(),
      () => this.#trafficMetrics.close(),
      () => this.#traffic.close(),
      () => this.#timeline.close(),
      () => this.#flows.close(),
    )
  }

  #ejected() {
    return describeEjected(this.#options.retry.suspects())
  }

  #describe(): Omit<StateToSend, 'families'> {
    const { run, loaded, nodeName, source, startedMs, state, inForce } = this.#options
    const { config } = loaded()
    return {
      version: run.version,
      pid: process.pid,
      nowMs: systemClock.now(),
      startedMs,
      source,
      nodeName,
      mode: { name: inForce.mode.name, asked: config.mode, reasons: inForce.reasons },
      config: encodeToObject(config),
      node: state.node,
      machineAddresses: state.machineAddresses,
      serviceCidrs: state.serviceCidrs,
      unheard: [...this.#options.unheard.values()],
      ejected: this.#ejected(),
      socketBalancing: this.#options.socketBalancing?.cgroup,
    }
  }
}
