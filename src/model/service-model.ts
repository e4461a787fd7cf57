// All services of one IP family, and what the proxy has decided about each of their ports.

import { namespacedName } from '../kube/types.ts'
import type { EndpointSlice, NamespacedName, Service } from '../kube/types.ts'
import { joinHostPort } from '../lib/ip.ts'
import { withElement, withoutElement } from '../lib/sorted-list.ts'
import type { Balance } from './balance.ts'
import { Claims } from './claims.ts'
import { type Endpoint, mergeEndpoints, portKey, portSources } from './endpoints.ts'
import { describeObjects } from './describe-objects.ts'
import type { ModelObjects } from './describe-objects.ts'
import { isRetried, type RetryScope } from './connect-retry.ts'
import { ENDS_HAVE_NO_EFFECT } from './ends.ts'
import { LIMITS_HAVE_NO_EFFECT } from './limits.ts'
import { NO_EJECTIONS, type Ejections } from './ejections.ts'
import { endpointPlaces } from './node-name-problem.ts'
import type { EndpointPlaces } from './node-name-problem.ts'
import type { ProblemLog } from './problems.ts'
import { planServicePorts } from './service-plan.ts'
import type { ServicePlan } from './service-plan.ts'
import { isIdle, moveRungs, type Rungs, sameShares, type SeenLoads } from './shares.ts'
import { DEFAULT_WEIGHT } from './weights.ts'
import { parseService, sameService } from './service-ports.ts'
import type { ServiceInfo } from './service-ports.ts'
import { concernsFamily, countOf, parseSlice, sameRecord } from './slice-record.ts'
import type { SlicePort, SliceRecord } from './slice-record.ts'
import { TriggerTimes } from './trigger-times.ts'
import type {
  ChangeCounts,
  HealthCheck,
  NodeView,
  NoLocalEndpoints,
  ServicePortChange,
  ServicePortName,
  ServicePortView,
} from './types.ts'

export interface ServiceModelOptions {
  /** Its family is the model's. */
  readonly node: NodeView
  readonly problems: ProblemLog
  /** Feature gate AllowServiceExternalIPs. */
  readonly allowExternalIPs: boolean
  /** The ways to choose that the mode has; absent: all. */
  readonly balances?: readonly Balance[] | undefined
  /** Whether connections are retried where a service has no annotation; absent: no. */
  readonly connectRetry?: RetryScope | undefined
  /** False: the mode cannot end connections to removed endpoints; absent: it can. */
  readonly endsConnections?: boolean | undefined
  /** Whether a new connection is compared with one frontend after the other; absent: no. */
  readonly comparesEach?: boolean | undefined
  /** Whether the mode can limit connections, asked where a service wants limits; absent: yes. */
  readonly canLimit?: (() => boolean) | undefined
  /** When the program started: earlier changes of endpoints are not timed. */
  readonly startedMs: number
}

/** A service, or the slices of one that has not come yet. */
interface Entry {
  readonly key: NamespacedName
  info: ServiceInfo | undefined
  /** `info` at the last planning. */
  plannedInfo: ServiceInfo | undefined
  /** Whether it has to be planned again: then it is in #dirty. */
  isDirty: boolean
  /** In order of their keys. */
  slices: readonly SliceRecord[]
  /** The result of the last takeChanges(), in order of the service's ports. */
  views: readonly ServicePortView[]
  /** The ports that lack a frontend that they claim. */
  losers: readonly ServicePortName[]
  noLocalInternal: number
  noLocalExternal: number
}

/** So many of one Service are more than many clusters have. */
const MANY_FRONTENDS = 1000
const TOO_LARGE = `it has more than ${MANY_FRONTENDS} addresses and ports, and in this proxy mode each new connection of a node is compared with one after the other; mode nftables looks them up`

const NONE: readonly never[] = []
const NO_RUNGS: Rungs = new Map()
const ALL_LOCAL: NoLocalEndpoints = { internal: 0, external: 0 }
/** Never filled: its users only look up and delete. */
const NO_VIEWS = new Map<ServicePortName, ServicePortView>()

/**
 * Takes API objects in any order, and returns the service ports that changed. An event costs work for its own service only.
 * Views change in takeChanges() and at no other time.
 */
export class ServiceModel {
  readonly #options: ServiceModelOptions
  readonly #entries = new Map<NamespacedName, Entry>()
  readonly #slices = new Map<NamespacedName, SliceRecord>()
  readonly #claims = new Claims()
  readonly #triggerTimes: TriggerTimes
  /** Entries to plan again. */
  #dirty: Entry[] = []
  readonly #healthChecks = new Map<NamespacedName, HealthCheck>()
  #healthCheckList: readonly HealthCheck[] | undefined
  #node: NodeView
  #connectRetry: RetryScope
  #ejections: Ejections = NO_EJECTIONS
  readonly #rungs = new Map<ServicePortName, Rungs>()
  /** Of the service whose endpoints were asked for last: who asks for one port of many asks for the others next. */
  #sources: { slices: readonly SliceRecord[]; byPort: ReturnType<typeof portSources> } | undefined
  #servicesTotal = 0
  #endpointsPending = 0
  #endpointsTotal = 0
  #noLocalInternal = 0
  #noLocalExternal = 0

  constructor(options: ServiceModelOptions) {
    this.#options = options
    this.#node = options.node
    this.#connectRetry = options.connectRetry ?? false
    this.#triggerTimes = new TriggerTimes(options.startedMs)
  }

  /** When the change concerns services, the next takeChanges() plans everything again. */
  setNode(node: NodeView): void {
    const before = this.#node
    if (node.family !== before.family)
      throw new Error(`Cannot plan for IPv${node.family}: the model is IPv${before.family}`)
    this.#node = node
    if (concernsServices(before, node)) for (const entry of this.#entries.values()) this.#markDirty(entry)
  }

  /** False when nothing changed. */
  setConnectRetry(connectRetry: RetryScope): boolean {
    if (connectRetry === this.#connectRetry) return false
    const before = this.#connectRetry
    this.#connectRetry = connectRetry
    for (const entry of this.#entries.values()) {
      const asked = entry.info?.annotations.connectRetry
      if (isRetried(asked, before) !== isRetried(asked, connectRetry)) this.#markDirty(entry)
    }
    return true
  }

  /** Takes the backends that do not answer, and the ports that may have them. */
  setEjections(ejections: Ejections, ports: Iterable<ServicePortName>): void {
    this.#ejections = ejections
    for (const name of ports) this.#markDirty(this.#entries.get(serviceOf(name)))
  }

  /** Moves the shares of a service port with least connections, by what was seen of its backends. False when they stay. */
  setLoads(name: ServicePortName, loads: SeenLoads): boolean {
    const view = this.view(name)
    if (view?.backends.balance !== 'least-connections') {
      this.#rungs.delete(name)
      return false
    }
    // Most are idle, and at rest.
    if (!this.#rungs.has(name) && isIdle(loads)) return false
    const listed = new Set(view.backends.map(({ ip, port }) => joinHostPort(ip, port)))
    const weights = new Map(
      this.endpointsOf(view).flatMap(({ ip, port, weight }) => {
        const backend = joinHostPort(ip, port)
        return listed.has(backend) ? [[backend, weight === 0 ? DEFAULT_WEIGHT : weight] as const] : []
      }),
    )
    const before = this.#rungs.get(name) ?? NO_RUNGS
    const rungs = moveRungs(weights, loads, before)
    if (rungs.size === 0) this.#rungs.delete(name)
    else this.#rungs.set(name, rungs)
    if (sameShares(before, rungs)) return false
    this.#markDirty(this.#entries.get(serviceOf(name)))
    return true
  }

  /** The rungs that setLoads() has come to, by service port. */
  get rungs(): ReadonlyMap<ServicePortName, Rungs> {
    return this.#rungs
  }

  /** Takes those of another model, before the service comes. */
  setRungs(name: ServicePortName, rungs: Rungs): void {
    this.#rungs.set(name, rungs)
  }

  setService(service: Service, name: NamespacedName = namespacedName(service)): void {
    const entry = this.#entries.get(name)
    // The same string object as its slices have: it is kept once.
    const key = entry?.key ?? name
    const problems: string[] = []
    const annotationProblems: string[] = []
    const { allowExternalIPs, balances, endsConnections = true, canLimit } = this.#options
    const { family } = this.#node
    const info = parseService(service, key, { family, allowExternalIPs, balances, problems, annotationProblems })
    if (info?.annotations.ends !== undefined && !endsConnections) annotationProblems.push(ENDS_HAVE_NO_EFFECT)
    if (info?.annotations.limits !== undefined && canLimit?.() === false) annotationProblems.push(LIMITS_HAVE_NO_EFFECT)
    this.#options.problems.set(`Service ${key}`, family, problems)
    this.#options.problems.set(annotationsOf(`Service ${key}`), family, annotationProblems, { owner: key })
    this.#servicesTotal++
    if (entry !== undefined || info !== undefined) this.#changeService(entry ?? this.#newEntry(key), info)
  }

  deleteService(key: NamespacedName): void {
    this.#options.problems.set(`Service ${key}`, this.#node.family, NONE)
    this.#options.problems.set(annotationsOf(`Service ${key}`), this.#node.family, NONE)
    this.#servicesTotal++
    const entry = this.#entries.get(key)
    if (entry !== undefined) this.#changeService(entry, undefined)
  }

  /** Ignores slices of the other family. */
  setSlice(slice: EndpointSlice, key: NamespacedName = namespacedName(slice)): void {
    const { family } = this.#node
    if (!concernsFamily(slice, family)) return this.deleteSlice(key)
    const problems: string[] = []
    const annotationProblems: string[] = []
    const service = [slice.namespace, slice.serviceName].join('/')
    const entry = this.#entries.get(service)
    const record = parseSlice(slice, { key, service: entry?.key ?? service }, { family, problems, annotationProblems })
    this.#options.problems.set(`EndpointSlice ${key}`, family, problems)
    this.#options.problems.set(annotationsOf(`EndpointSlice ${key}`), family, annotationProblems, { owner: service })
    if (record === undefined) return this.#dropSlice(key)
    this.#endpointsTotal++
    const before = this.#slices.get(key)
    if (before !== undefined && sameRecord(before, record)) return
    this.#endpointsPending++
    this.#triggerTimes.add(record.service, slice.triggerTimeMs)
    if (before !== undefined && before.service !== record.service) this.#removeSlice(before)
    this.#addSlice(entry ?? this.#newEntry(record.service), record)
    this.#slices.set(key, record)
  }

  deleteSlice(key: NamespacedName): void {
    this.#options.problems.set(`EndpointSlice ${key}`, this.#node.family, NONE)
    this.#options.problems.set(annotationsOf(`EndpointSlice ${key}`), this.#node.family, NONE)
    this.#dropSlice(key)
  }

  get hasChanges(): boolean {
    return this.#dirty.length > 0
  }

  /** The service ports whose views changed since the last call. */
  takeChanges(): ServicePortChange[] {
    const changes: ServicePortChange[] = []
    for (const entry of this.#dirty) this.#plan(entry, changes)
    this.#dirty = []
    this.#endpointsPending = 0
    return changes
  }

  /** When the changes since the last call were triggered, by service: for the network programming latency. */
  takeTriggerTimes(): ReadonlyMap<NamespacedName, readonly number[]> {
    return this.#triggerTimes.take()
  }

  *views(): Generator<ServicePortView> {
    // yield* would allocate one more object for each.
    for (const { views } of this.#entries.values()) for (const view of views) yield view
  }

  view(name: ServicePortName): ServicePortView | undefined {
    const entry = this.#entries.get(serviceOf(name))
    return entry?.views.find((view) => view.name === name)
  }

  /** Every endpoint of a service port, usable or not. */
  endpointsOf({ namespace, service, portName, protocol }: ServicePortView): Endpoint[] {
    const { slices = NONE, info } = this.#entries.get(`${namespace}/${service}`) ?? {}
    const weights = info?.annotations.weights
    if (this.#sources?.slices !== slices) this.#sources = { slices, byPort: portSources(slices) }
    const sources = this.#sources.byPort.get(portKey(portName, protocol)) ?? NONE
    return mergeEndpoints(sources, this.#node.nodeName, weights)
  }

  /** The ports that the slices of a service have endpoints for. */
  offeredPorts(key: NamespacedName): readonly SlicePort[] {
    const ports = new Map<string, SlicePort>()
    for (const slice of this.#entries.get(key)?.slices ?? NONE) {
      for (const port of slice.ports) ports.set(`${portKey(port.name, port.protocol)} ${port.port}`, port)
    }
    return [...ports.values()]
  }

  /** How many endpoints the slices of a service name, whatever their ports. */
  countEndpointsOf(key: NamespacedName): number {
    return (this.#entries.get(key)?.slices ?? []).reduce((sum, slice) => sum + countOf(slice), 0)
  }

  /** Service ports, and whether their traffic gets its own metrics; undefined: up to the limit. */
  *trafficMetricsSettings(): Iterable<readonly [ServicePortName, boolean | undefined]> {
    for (const { info } of this.#entries.values()) {
      for (const { name } of info?.ports ?? NONE) yield [name, info?.annotations.trafficMetrics]
    }
  }

  /** API objects with which another model makes the same decisions. */
  objects(): ModelObjects {
    const infos = [...this.#entries.values()].flatMap(({ info }) => info ?? NONE)
    return describeObjects(this.#node.family, infos, [...this.#slices.values()])
  }

  get changeCounts(): ChangeCounts {
    const isChanged = ({ info, plannedInfo }: Entry) => !sameService(info, plannedInfo)
    return {
      servicesPending: this.#dirty.reduce((sum, entry) => sum + (isChanged(entry) ? 1 : 0), 0),
      servicesTotal: this.#servicesTotal,
      endpointsPending: this.#endpointsPending,
      endpointsTotal: this.#endpointsTotal,
    }
  }

  /** The nodes that endpoints name. Reads all of them. */
  endpointPlaces(): EndpointPlaces {
    return endpointPlaces(this.#slices.values(), this.#node.nodeName)
  }

  get noLocalEndpoints(): NoLocalEndpoints {
    return { internal: this.#noLocalInternal, external: this.#noLocalExternal }
  }

  /** The same list as the last time unless a health check has changed. */
  healthChecks(): readonly HealthCheck[] {
    return (this.#healthCheckList ??= [...this.#healthChecks.values()])
  }

  #changeService(entry: Entry, info: ServiceInfo | undefined): void {
    const before = entry.info
    if (sameService(before, info)) return
    entry.info = info
    this.#markDirty(entry)
    for (const rival of this.#claims.replace(before, info)) this.#markDirty(this.#entries.get(rival.key))
  }

  #dropSlice(key: NamespacedName): void {
    const record = this.#slices.get(key)
    if (record === undefined) return
    this.#endpointsTotal++
    this.#endpointsPending++
    this.#removeSlice(record)
    this.#slices.delete(key)
  }

  /** Replaces a former record of the same slice. */
  #addSlice(entry: Entry, record: SliceRecord): void {
    entry.slices = withElement(entry.slices, record, byKey)
    this.#markDirty(entry)
  }

  #removeSlice(record: SliceRecord): void {
    this.#triggerTimes.forget(record.service)
    const entry = this.#entries.get(record.service)
    if (entry === undefined) return
    entry.slices = withoutElement(entry.slices, record, byKey)
    this.#markDirty(entry)
  }

  #newEntry(key: NamespacedName): Entry {
    const entry: Entry = {
      key,
      info: undefined,
      plannedInfo: undefined,
      isDirty: false,
      slices: NONE,
      views: NONE,
      losers: NONE,
      noLocalInternal: 0,
      noLocalExternal: 0,
    }
    this.#entries.set(key, entry)
    return entry
  }

  #markDirty(entry: Entry | undefined): void {
    if (entry === undefined || entry.isDirty) return
    entry.isDirty = true
    this.#dirty.push(entry)
  }

  /** Brings an entry up to date and adds what changed. */
  #plan(entry: Entry, changes: ServicePortChange[]): void {
    const { info, slices } = entry
    entry.plannedInfo = info
    entry.isDirty = false
    const former = entry.views.length === 0 ? NO_VIEWS : new Map(entry.views.map((view) => [view.name, view]))
    const plan =
      info &&
      planServicePorts({
        info,
        slices,
        node: this.#node,
        claims: this.#claims,
        former,
        connectRetry: this.#connectRetry,
        ejections: this.#ejections,
        balances: this.#options.balances,
        canLimit: this.#options.canLimit,
        rungs: this.#rungs,
      })
    entry.views = plan?.views ?? NONE
    for (const view of entry.views) {
      const before = former.get(view.name)
      former.delete(view.name)
      if (view.backends.balance !== 'least-connections') this.#rungs.delete(view.name)
      if (before !== view) changes.push({ name: view.name, before, after: view })
    }
    for (const name of former.keys()) this.#rungs.delete(name)
    for (const [name, before] of former) changes.push({ name, before, after: undefined })
    this.#setLosses(entry, plan?.losses ?? NONE)
    this.#countNoLocal(entry, plan?.noLocalEndpoints ?? ALL_LOCAL)
    this.#setHealthCheck(entry.key, plan?.healthCheck)
    if (this.#options.comparesEach === true) this.#noteSize(entry)
    if (info === undefined && slices.length === 0) this.#entries.delete(entry.key)
  }

  #setHealthCheck(key: NamespacedName, check: HealthCheck | undefined): void {
    const before = this.#healthChecks.get(key)
    if (before === check) return
    if (before?.port === check?.port && before?.localEndpoints === check?.localEndpoints) return
    if (check === undefined) this.#healthChecks.delete(key)
    else this.#healthChecks.set(key, check)
    this.#healthCheckList = undefined
  }

  #setLosses(entry: Entry, losses: ServicePlan['losses']): void {
    const { problems } = this.#options
    const { family } = this.#node
    if (losses.length === 0 && entry.losers.length === 0) return
    const former = new Set(entry.losers)
    for (const { name, messages } of losses) {
      former.delete(name)
      problems.set(`Service port ${name}`, family, messages)
    }
    for (const name of former) problems.set(`Service port ${name}`, family, NONE)
    entry.losers = losses.length === 0 ? NONE : losses.map(({ name }) => name)
  }

  /** For its owner: others pay for it. */
  #noteSize({ key, views }: Entry): void {
    const frontends = views.reduce((sum, view) => sum + view.frontends.length, 0)
    const messages = frontends > MANY_FRONTENDS ? [TOO_LARGE] : NONE
    this.#options.problems.set(`Size of Service ${key}`, this.#node.family, messages, {
      owner: key,
      event: 'ServiceIsLarge',
    })
  }

  #countNoLocal(entry: Entry, now: NoLocalEndpoints): void {
    this.#noLocalInternal += now.internal - entry.noLocalInternal
    this.#noLocalExternal += now.external - entry.noLocalExternal
    entry.noLocalInternal = now.internal
    entry.noLocalExternal = now.external
  }
}

/** The object of a problem. */
export function annotationsOf(object: string): string {
  return `Annotations of ${object}`
}

/** Of the service that the port belongs to. */
export function serviceOf(name: ServicePortName): NamespacedName {
  const colon = name.indexOf(':')
  return colon < 0 ? name : name.slice(0, colon)
}

function byKey(a: SliceRecord, b: SliceRecord): number {
  return a.key < b.key ? -1 : a.key > b.key ? 1 : 0
}

/** Whether views depend on what changed. Only modes read the rest of NodeView. */
function concernsServices(before: NodeView, after: NodeView): boolean {
  return (
    before.nodeName !== after.nodeName ||
    before.zone !== after.zone ||
    before.nodeIp !== after.nodeIp ||
    before.masqueradeAll !== after.masqueradeAll ||
    before.balance !== after.balance ||
    (before.localDetector.kind === 'none') !== (after.localDetector.kind === 'none')
  )
}
