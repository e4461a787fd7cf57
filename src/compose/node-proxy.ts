// One running proxy, composed of the parts in other folders. It owns everything that it opens, and closes it in stop().

import { featureEnabled, featureStates } from '../config/feature-gates.ts'
import type { RunOptions } from '../config/run-options.ts'
import type { LoadedConfiguration } from '../config/types.ts'
import type { ClusterSource } from '../kube/cluster-source.ts'
import { anEvent } from '../kube/event-kinds.ts'
import { EventRecorder } from '../kube/events.ts'
import type { SentRequest } from '../kube/transport.ts'
import type { Node } from '../kube/types.ts'
import { systemClock } from '../lib/clock.ts'
import type { Family } from '../lib/ip.ts'
import type { Logger } from '../lib/log.ts'
import { nodeNameProblem } from '../model/node-name-problem.ts'
import { ProblemLog } from '../model/problems.ts'
import type { Unheard } from '../serve/control/state.ts'
import { ProxyHealth } from '../serve/proxy-health.ts'
import { collectInTime, giveBackMemory } from '../system/give-back.ts'
import { optimizeLater, optimizeSooner } from '../system/optimize-later.ts'
import { Answers } from './answers.ts'
import { beginSource, type BegunSource } from './begin.ts'
import { closeProxy } from './close-proxy.ts'
import { clusterHandlers } from './cluster-handlers.ts'
import { LeastConnectionsCounting } from './least-connections.ts'
import { loadSocketBalancing, type OpenSocketBalancing } from './socket-balancing.ts'
import { hasIpv6 } from './families.ts'
import { FamilyPart } from './family-part.ts'
import type { FamilyPipeline } from '../reconcile/family-pipeline.ts'
import type { Subscriber } from '../reconcile/subscribers.ts'
import { leaveToKernel } from './leave-to-kernel.ts'
import { followMachineAddresses, readMachineAddresses } from './machine-addresses.ts'
import { createMetrics, type Metrics } from '../metrics/metrics.ts'
import type { Mode, ModeOptions } from '../modes/contract.ts'
import { openModeOrStandIn, type ModeInForce } from './open-mode.ts'
import { OtherModes } from './other-modes.ts'
import { NodeState } from './node-state.ts'
import { NodeWait } from './node-wait.ts'
import { Rest } from './rest.ts'
import type { SocketBalancing } from '../connect/socket-balancing.ts'
import type { ConnectRetry } from '../retry/connect-retry.ts'
import { openConnectRetry } from './retries.ts'
import type { SelfCheck } from './self-check.ts'
import { Servers } from './servers.ts'
import { openTripwire, type Tripwire } from './tripwire.ts'
import { applySettings, nodeNameOf, nodeSettings, otherSettings, periodsOf, restartsFor } from './settings.ts'

/** Where there is no API server, the log has to do. */
const noEvents: Pick<EventRecorder, 'record'> = { record() {} }

/** What a NodeProxy hands over to the one that follows it in the same process. */
export interface HandoverState {
  /** The Node as the API last had it. It may be missing there now. */
  readonly node: Node | undefined
}

/** What the process provides. */
export interface StartContext {
  readonly handover?: HandoverState
  readonly selfCheck?: SelfCheck
  /** The first requests, begun already. */
  readonly begun?: BegunSource
}

/** What a NodeProxy is made of. */
interface Opened {
  readonly context: StartContext
  readonly source: ClusterSource
  readonly families: readonly Family[]
  readonly inForce: ModeInForce
  readonly openSocketBalancing: OpenSocketBalancing | undefined
}

export class NodeProxy {
  readonly #options: RunOptions
  readonly #log: Logger
  readonly #mode: Mode
  readonly #nodeName: string
  readonly #source: ClusterSource
  readonly #metrics: Metrics
  readonly #health: ProxyHealth
  readonly #unheard = new Map<string, Unheard>()
  readonly #state: NodeState
  readonly #nodeWait: NodeWait
  readonly #retry: ConnectRetry
  readonly #socketBalancing: SocketBalancing | undefined
  readonly #leastConnections: LeastConnectionsCounting
  readonly #parts: readonly FamilyPart[]
  readonly #servers: Servers
  readonly #events: Pick<EventRecorder, 'record'>
  readonly #inForce: ModeInForce
  readonly #selfCheck: SelfCheck | undefined
  readonly #answers: Answers
  readonly #otherModes: OtherModes
  #addressWatch: { close(): void } | undefined
  readonly #abort = new AbortController()
  readonly #tripwire: Tripwire
  readonly #rest = new Rest({ giveBack: settleDown, memory: () => process.memoryUsage.rss(), clock: systemClock })
  #loaded: LoadedConfiguration

  /** Rejects when the settings cannot be used, or the mode on this machine. Nothing else happens before start(). */
  static async open(options: RunOptions, context: StartContext = {}): Promise<NodeProxy> {
    const { config, log } = options
    let proxy: NodeProxy | undefined
    const { source, countRequests } = context.begun ?? beginSource(options)
    const families = hasIpv6() ? ([4, 6] as const) : ([4] as const)
    const onForeignChange: ModeOptions['onForeignChange'] = (family, certainty) => {
      if (proxy !== undefined) proxy.#pipeline(family)?.heal(certainty)
    }
    const onTakenBack = () => {
      if (proxy === undefined) return
      proxy.#otherModes.again()
      for (const { pipeline } of proxy.#parts) pipeline.heal()
    }
    const { localhostNodePorts = false } = nodeSettings(config)
    const inForce = await openModeOrStandIn(
      { name: config.mode, standIns: options.standIns },
      { config, log, families, clock: systemClock, onForeignChange, onTakenBack, localhostNodePorts },
    ).catch((error: unknown) => {
      source.close()
      throw error
    })
    const openSocketBalancing = await loadSocketBalancing(config.socketBalancing, inForce.mode, log)
    const opened = new NodeProxy(options, { context, source, families, inForce, openSocketBalancing })
    proxy = opened
    countRequests((request) => opened.#countRequest(request))
    return opened
  }

  private constructor(options: RunOptions, opened: Opened) {
    const { context, source, families, inForce } = opened
    const { config, log } = options
    this.#options = options
    this.#loaded = options
    this.#log = log
    this.#nodeName = nodeNameOf(config)
    this.#source = source
    this.#inForce = inForce
    this.#mode = inForce.mode
    this.#otherModes = new OtherModes({ inForce: this.#mode, families, config: () => this.#loaded.config, log })
    const features = featureStates(config.featureGates)
    this.#metrics = createMetrics({
      shown: this.#mode.metrics,
      build: buildInfo(options),
      features,
      nativeHistograms: featureEnabled(config.featureGates, 'NativeHistograms'),
    })
    const { overLimit } = inForce.running
    if (overLimit !== undefined) this.#metrics.register(overLimit)
    this.#tripwire = openTripwire(this.#metrics, log)
    this.#metrics.mode.with(this.#mode.name, config.mode).set(1)
    this.#health = new ProxyHealth({ clock: systemClock, timeoutMs: 2 * config.syncPeriodMs })
    const { signal } = this.#abort
    const { client } = this.#source
    this.#events =
      client === undefined
        ? noEvents
        : new EventRecorder({
            client,
            nodeName: this.#nodeName,
            log,
            signal,
            onOutcome: (outcome) => this.#metrics.events.with(outcome).inc(),
          })
    const { handover, selfCheck } = context
    this.#selfCheck = selfCheck
    const node = handover?.node?.name === this.#nodeName ? handover.node : undefined
    const facts = { node, machineAddresses: readMachineAddresses() }
    this.#state = new NodeState(nodeSettings(config), facts, () => this.#nodeChanged())
    this.#health.setNode(node)
    this.#nodeWait = new NodeWait({
      nodeName: this.#nodeName,
      node: () => this.#state.node,
      needs:
        client === undefined ? [] : config.detectLocalMode === 'NodeCIDR' ? ['addresses', 'podCIDRs'] : ['addresses'],
      clock: systemClock,
      log,
      signal,
    })
    const problems = new ProblemLog(({ object, message, owner, event = 'AnnotationIgnored' as const }) => {
      log.warn(message, { object })
      if (owner !== undefined) this.#events.record(anEvent(event, message, owner))
    })
    this.#retry = openConnectRetry({
      families,
      mode: this.#mode,
      running: inForce.running,
      machineAddresses: () => this.#state.machineAddresses,
      pipeline: (family) => this.#pipeline(family),
      metrics: this.#metrics,
      events: this.#events,
      log,
    })
    this.#socketBalancing = opened.openSocketBalancing?.({
      families,
      views: (family) => this.#pipeline(family)!.views(),
      machineAddresses: () => this.#state.machineAddresses,
      opensLoopback: this.#mode.semantics.localhostNodePorts === 'by rules' && config.iptables.localhostNodePorts,
      metrics: this.#metrics,
      log,
    })
    this.#leastConnections = new LeastConnectionsCounting({
      mode: this.#mode,
      pipeline: (family) => this.#pipeline(family),
      log,
    })
    this.#parts = families.map((family) => this.#createPart(family, problems))
    this.#answers = new Answers({
      run: options,
      loaded: () => this.#loaded,
      nodeName: this.#nodeName,
      source: source.name,
      api: source.client,
      startedMs: this.#metrics.startSeconds * 1000,
      pipelines: this.#parts.map(({ pipeline }) => pipeline),
      state: this.#state,
      unheard: this.#unheard,
      inForce,
      retry: this.#retry,
      socketBalancing: this.#socketBalancing,
      leastConnections: this.#leastConnections,
      metrics: this.#metrics,
      selfCheck,
    })
    this.#servers = new Servers({
      run: options,
      metrics: this.#metrics,
      health: this.#health,
      mode: this.#mode.name,
      status: () => this.#answers.status(),
      onRefused: (reason, note) => this.#events.record(anEvent(reason, note)),
    })
  }

  /** Runs until stop() is called; rejects when the proxy cannot go on. */
  async start(): Promise<void> {
    const { log } = this.#options
    applySettings(this.#loaded.config, log)
    log.info('Starting', { mode: this.#mode.name, node: this.#nodeName, source: this.#source.name })
    this.#recordStart()
    this.#tripwire.start()
    const failed = this.#servers.open(this.#loaded.config)
    this.#answers.open()
    this.#answers.apply(this.#loaded.config)
    // Not before all of it is loaded, and of Node what a server needs: what V8 has compiled beforehand is only used with the flags
    // that it was compiled with.
    collectInTime()
    optimizeLater()
    this.#addressWatch = followMachineAddresses({
      onAddresses: (addresses) => this.#state.setMachineAddresses(addresses),
      clock: systemClock,
      log,
    })
    const watching = this.#source.watch({
      nodeName: this.#nodeName,
      handlers: clusterHandlers({
        unheard: this.#unheard,
        pipelines: this.#parts.map(({ pipeline }) => pipeline),
        setNode: (node) => this.#setNode(node),
        setServiceCidr: (name, cidrs) => this.#state.setServiceCidr(name, cidrs),
        onNodeListed: (proceed) =>
          this.#nodeWait.begin(() => {
            this.#health.setNode(this.#state.node)
            proceed()
          }),
        onListed: () => this.#startPipelines(),
        onMany: optimizeSooner,
      }),
      log,
      signal: this.#abort.signal,
      nextWriteMs: () => this.#nextWriteMs(),
      onWatchRestarted: (resource) => this.#metrics.watchRestarts.with(resource).inc(),
    })
    await Promise.race([watching, failed, this.#nodeWait.failed])
  }

  get handover(): HandoverState {
    return { node: this.#state.node }
  }

  /** Applies another configuration; false when it needs a new NodeProxy. */
  apply(loaded: LoadedConfiguration): boolean {
    if (restartsFor(this.#mode, this.#loaded.config, loaded.config)) return false
    this.#loaded = loaded
    const { config } = loaded
    applySettings(config, this.#log)
    this.#health.setTimeoutMs(2 * config.syncPeriodMs)
    this.#state.setSettings(nodeSettings(config))
    for (const { pipeline } of this.#parts) {
      pipeline.setPeriods(periodsOf(loaded, this.#mode))
      if (pipeline.model.setConnectRetry(config.connectRetry)) pipeline.changed()
    }
    this.#servers.reopen(config)
    this.#answers.apply(config)
    this.#judge()
    return true
  }

  /** Before the process ends: a mode that carries connections lets them end, sooner when the signal is aborted. */
  async end(signal: AbortSignal): Promise<void> {
    const { end } = this.#inForce.running
    await this.#answers.close()
    // Without the proxy, the rules of connect retry would only withhold resets from clients for some seconds.
    this.#retry.end()
    if (end === undefined) {
      this.#log.info('Ending, the rules stay')
      return
    }
    this.#log.info('Ending, connections are carried to their end')
    this.#abort.abort()
    await this.#leaveToKernel()
    // The mode removes its rules itself: no other write may follow.
    await Promise.all(this.#parts.map(({ pipeline }) => pipeline.halt()))
    await end(signal)
  }

  async #leaveToKernel(): Promise<void> {
    await this.#otherModes.hold()
    await leaveToKernel({
      mode: this.#mode,
      running: this.#inForce.running,
      families: this.#parts.map(({ pipeline }) => pipeline.node.family),
      config: this.#loaded.config,
      left: this.#parts.map(({ pipeline }) => ({ node: pipeline.node, views: pipeline.model.views() })),
      metrics: this.#metrics,
      log: this.#log,
    })
  }

  /** Called before another proxy is opened on this machine. From now on nothing is removed: it may belong to the mode of the other. */
  async handOver(): Promise<void> {
    await this.#otherModes.hold()
  }

  /** Called when the other proxy could not be opened. */
  takeBack(): void {
    this.#otherModes.release()
  }

  /** Ends everything but the rules. Closes everything, also after an error; rejects with the first one. */
  stop(): Promise<void> {
    this.#abort.abort()
    this.#selfCheck?.stop()
    return closeProxy({
      addressWatch: this.#addressWatch,
      rest: this.#rest,
      tripwire: this.#tripwire,
      parts: this.#parts,
      retry: this.#retry,
      socketBalancing: this.#socketBalancing,
      leastConnections: this.#leastConnections,
      mode: this.#inForce.running,
      servers: this.#servers,
      answers: this.#answers,
      source: this.#source,
    })
  }

  /** `times` of them: a proxy that takes over goes on counting. */
  countReloads(outcome: 'applied' | 'rejected', times = 1): void {
    this.#metrics.configReloads.with(outcome).inc(times)
  }

  #countRequest({ method, host, code, tookMs }: SentRequest): void {
    this.#metrics.restRequests.with(code, method, host).inc()
    if (tookMs !== undefined) this.#metrics.restRequestDuration.with(method, host).observe(tookMs / 1000)
  }

  #recordStart(): void {
    this.#events.record(anEvent('Starting'))
    for (const note of this.#inForce.reasons) {
      this.#log.warn(note)
      this.#events.record(anEvent('KubeProxyModeFallback', note))
    }
    if (this.#loaded.mode === 'given') return
    const note = `The proxy mode is not configured, using ${this.#mode.name}. Set it: from Kubernetes 1.40 on the default is nftables.`
    this.#log.warn(note)
    this.#events.record(anEvent('KubeProxyDefaultMode', note))
  }

  #createPart(family: Family, problems: ProblemLog): FamilyPart {
    return new FamilyPart({
      node: this.#state.view(family),
      mode: this.#inForce.running,
      balances: this.#mode.balances,
      canLimit: () => this.#mode.semantics.canLimit && this.#inForce.running.canLimit?.() !== false,
      periods: periodsOf(this.#loaded, this.#mode),
      connectRetry: this.#loaded.config.connectRetry,
      endsConnections: this.#mode.translates !== 'by relaying',
      comparesEach: this.#mode.comparesFrontends === 'one by one',
      subscribers: this.#subscribers(family),
      allowExternalIPs: featureEnabled(this.#loaded.config.featureGates, 'AllowServiceExternalIPs'),
      machineAddresses: () => this.#state.machineAddresses,
      problems,
      metrics: this.#metrics,
      health: this.#health,
      events: this.#events,
      log: this.#log,
    })
  }

  #subscribers(family: Family): Subscriber[] {
    const choice = this.#socketBalancing
    return [
      { name: 'connect_retry', follow: ({ node, changes }) => this.#retry.follow(node, changes) },
      { name: 'socket_balancing', follow: ({ node, changes }) => choice?.follow(node, changes) },
      { name: 'least_connections', follow: ({ node, changes }) => this.#leastConnections.follow(node, changes) },
      { name: 'other_modes', follow: () => this.#otherModes.synced(family) },
      { name: 'rest', follow: () => this.#rest.synced() },
    ]
  }

  #pipeline(family: 4 | 6): FamilyPipeline | undefined {
    return this.#parts.find(({ pipeline }) => pipeline.node.family === family)?.pipeline
  }

  /** Of the families with changes that wait, the first. */
  #nextWriteMs(): number | undefined {
    const waits = this.#parts.map(({ pipeline }) => pipeline.nextWriteMs).filter((ms) => ms !== undefined)
    return waits.length === 0 ? undefined : Math.min(...waits)
  }

  #startPipelines(): void {
    const [first] = this.#parts
    // Where there is such a Node, its name is right, and the endpoints need not be looked at.
    const places = this.#state.node === undefined ? first?.pipeline.model.endpointPlaces() : undefined
    const problem = places === undefined ? undefined : nodeNameProblem(this.#nodeName, false, places)
    if (problem !== undefined) this.#log.error(undefined, problem)
    const families = this.#parts.map(({ pipeline }) => pipeline.node.family)
    const { warnings, errors } = this.#state.problems(otherSettings(this.#loaded.config, families))
    for (const warning of warnings) this.#log.warn(warning)
    if (errors.length > 0) throw new Error(`Cannot serve with this configuration: ${errors.join('; ')}`)
    for (const { pipeline } of this.#parts) pipeline.start()
    this.#judge()
  }

  /** In the background. What the configuration says by then counts. */
  #judge(): void {
    const running = () => ({ options: { ...this.#options, ...this.#loaded }, node: this.#state.node })
    const isBusy = () => this.#parts.some(({ pipeline }) => pipeline.syncState.lastSyncMs === undefined)
    this.#selfCheck?.begin(running, this.#events, isBusy)
  }

  #setNode(node: Node | undefined): void {
    if (node === undefined) {
      const note = 'The Node object was deleted; what is known of it stays in force until it is back'
      this.#log.error(undefined, note, { node: this.#nodeName })
      return
    }
    const kept = this.#state.setNode(node)
    if (kept.length > 0) {
      const note = `The Node has no ${kept.join(' and ')} any more; what was known stays in force until it has`
      this.#log.warn(note, { node: this.#nodeName })
    }
    // Load balancers must not send anything here as long as the proxy waits for the Node.
    if (this.#nodeWait.isOver) this.#health.setNode(node)
    this.#nodeWait.nodeChanged()
  }

  #nodeChanged(): void {
    for (const part of this.#parts) part.setNode(this.#state.view(part.pipeline.node.family))
    this.#retry.addressesChanged()
    this.#socketBalancing?.addressesChanged()
  }
}

function buildInfo({ version, build }: RunOptions): Parameters<typeof createMetrics>[0]['build'] {
  const [, major = '', minor = ''] = /^v(\d+)\.(\d+)/.exec(version) ?? []
  return { major, minor, version, commit: build.commit, treeState: build.treeState, buildDate: build.date }
}

/** After the start, and now and then: what is left to do is little. */
function settleDown(): void {
  giveBackMemory()
  optimizeLater()
}
