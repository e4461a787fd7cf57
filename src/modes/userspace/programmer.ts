// Programs the userspace mode for one IP family: listeners for each list of backends, and the rules that lead there.
//
// A listener is opened before its rules are written, and closed after they are removed. When endpoints change, the rules stay, and
// the data path gets the new list.
//
// A UDP listener to which rules lead no more stays open for the clients who came through it, as long as their backends serve:
// policies choose for new clients and do not disturb others, as in the other modes.

import { hashBy } from '../../model/balance.ts'
import type { Clock } from '../../lib/clock.ts'
import { joinHostPort } from '../../lib/ip.ts'
import { inTurns, type Steps } from '../../lib/steps.ts'
import type { NodeView, ServicePortChange, ServicePortName, ServicePortView } from '../../model/types.ts'
import type { MissingNow } from './missing-listeners.ts'
import { type Entrance, type EntranceId, entranceId, listsOf } from './plan/entrance.ts'
import { userspacePlanner } from './plan/planner.ts'
import { knownPorts, type ListenAddress, listenersIn, type ServedPort } from './plan/service.ts'
import type { Table } from '../../nftables/types.ts'
import type { Pool } from '../../data-path/control-pool.ts'
import type { Listeners, Refusal, Served } from '../../data-path/listeners.ts'
import type { SeenAs } from '../../data-path/seen-as.ts'
import { isPortTaken } from '../../data-path/sockets.ts'
import type { TableDriver } from '../../nftables/table-driver.ts'
import { TableProgrammer } from '../../table-sync/table-programmer.ts'
import type { PortChange } from '../../table-sync/table-planner.ts'
import type { Answerers, FinishStats, Programmer, SyncStats } from '../../reconcile/programmer.ts'
import { LISTS, servedName } from './served-name.ts'

export interface UserspaceProgrammerOptions {
  readonly listeners: Listeners
  readonly driver: TableDriver
  readonly clock: Clock
  /** Called when a service port cannot be served, unless for want of file descriptors. */
  readonly onRefused: (name: string, reason: string) => void
  /** Called after each sync with the listeners for which there was no file descriptor. */
  readonly onMissing: (missing: MissingNow) => void
  /** The address of this machine on which clients of the node are served. */
  readonly listenAddress: (node: NodeView) => string
  /** Called when another process has taken over, and with undefined when that one is gone: then all is to be synced again. */
  readonly onSuccessor: (listener: ListenAddress | undefined) => void
}

type PreferredPort = (view: ServicePortView, entrance: Entrance) => number | undefined

/** How a service port is served. */
interface Service {
  readonly view: ServicePortView
  readonly port: ServedPort
  /** Entrances that could not be opened, and why. */
  readonly refused: ReadonlyMap<EntranceId, Refusal>
  /** The listeners that stay open, by list. */
  readonly stays: ReadonlyMap<string, ReadonlySet<SeenAs>>
}

export class UserspaceProgrammer implements Programmer {
  readonly #options: UserspaceProgrammerOptions
  readonly #rules: TableProgrammer<ServedPort>
  /** What the rules in the kernel lead to. */
  readonly #services = new Map<ServicePortName, Service>()
  /** Those of them with entrances that could not be opened; those that were tried last come last. */
  readonly #refused = new Set<ServicePortName>()
  #node: NodeView | undefined
  /** The rules have led here: a process that has never received traffic has nobody's connections, and no successor. */
  #hasServed = false
  #isWithdrawn = false
  #isEnding = false
  /** What is served on an address that the node had before, until the rules lead there no more. */
  readonly #left: Pool[] = []
  /** When it is time to look for ports again, or for the process that has taken over. */
  #retryMs = Infinity
  /** The last retries have all had success: others may, too. */
  #mayOpenMore = false
  /** A listener of the process that has taken over. */
  #successor: ListenAddress | undefined

  constructor(options: UserspaceProgrammerOptions) {
    this.#options = options
    this.#rules = new TableProgrammer({ planner: userspacePlanner, ...options })
  }

  async sync(node: NodeView, changes: readonly ServicePortChange[]): Promise<SyncStats> {
    if (this.#isWithdrawn) return NOTHING_DONE
    if (this.#successor !== undefined) return SUCCEEDED
    this.#options.listeners.lookForFds()
    const answerers = this.#answerersOf(changes)
    const wanted = new Map(changes.map(({ name, after }) => [name, after]))
    const retries = this.#retries(wanted)
    for (const name of retries) wanted.set(name, this.#services.get(name)!.view)
    const views = [...wanted.values()].filter((view) => view !== undefined)
    const services = await inTurns(this.#serving(views, () => undefined))
    const ports = Array.from(wanted.keys(), (name) => ({
      name,
      before: this.#services.get(name)?.port,
      after: services.get(name)?.port,
    }))
    const stats = await this.#rules.sync(node, ports)
    await inTurns(this.#closing(ports, services))
    this.#mayOpenMore = retries.length > 0 && !retries.some((name) => this.#refused.has(name))
    this.#synced()
    return { ...this.#withListeners(stats, views), answerers }
  }

  async syncAll(node: NodeView, all: Iterable<ServicePortView>): Promise<SyncStats> {
    if (this.#isWithdrawn) return NOTHING_DONE
    const { listeners, driver, listenAddress } = this.#options
    const table = driver.read()
    if (this.#hasServed && this.#yieldTo(othersIn(node, table, listeners))) return SUCCEEDED
    this.#node = node
    this.#left.push(...listeners.moveTo(listenAddress(node)))
    listeners.lookForPorts()
    const views = [...all]
    const services = await inTurns(this.#serving(views, knownPorts(node.family, table)))
    const ports = Array.from(services.values(), ({ port }) => port)
    const stats = await this.#rules.syncAll(node, ports, { table })
    this.#hasServed = true
    this.#closeAllBut(services.values())
    for (const pool of this.#left.splice(0)) pool.close()
    this.#services.clear()
    this.#refused.clear()
    for (const [name, service] of services) this.#set(name, service)
    this.#synced()
    return this.#withListeners(stats, views)
  }

  /** Tries again to open what could not be opened. While the rules are another's, looks whether that one is still there. */
  async finish(): Promise<FinishStats> {
    if (this.#isWithdrawn) return NOTHING_DONE
    const isDue = this.#retryMs <= this.#options.clock.monotonicNow()
    if (this.#successor !== undefined) {
      if (isDue) this.#yieldTo([this.#successor])
      return { ...NOTHING_DONE, againInMs: this.#againInMs }
    }
    if (!isDue) return { ...(await this.#rules.finish()), againInMs: this.#againInMs }
    try {
      this.#options.listeners.lookForPorts()
      const { transactions, operations, bytes } = await this.sync(this.#node!, [])
      return { transactions, operations, bytes, againInMs: this.#againInMs }
    } catch {
      return { ...NOTHING_DONE, isUnsure: true }
    }
  }

  /** Where UDP flows of a service port go at present, those that came before it changed included. */
  flowTargets(view: ServicePortView): string[] {
    return LISTS.flatMap((list) => {
      const open = this.#options.listeners.get(servedName(view, list))?.listeners.values() ?? []
      return Array.from(open, ({ address, port }) => joinHostPort(address, port))
    })
  }

  /**
   * New connections are no longer led to the proxy; what translates those that are open stays. Where the rules cannot be
   * changed the listeners close all the same: a client that is led there is refused instead of being cut off later.
   */
  async withdraw(): Promise<void> {
    this.#isEnding = true
    try {
      const node = this.#hasServed ? this.#node : undefined
      if (node !== undefined && this.#successor === undefined) await this.syncAll(node, [])
    } finally {
      this.#isWithdrawn = true
      this.#options.listeners.releaseAll()
      for (const pool of this.#left.splice(0)) pool.close()
    }
  }

  /** Whether the rules have led here. */
  get hasServed(): boolean {
    return this.#hasServed
  }

  /** Whether the rules lead to listeners of another process, which must keep them when this one ends. */
  isSucceeded(): boolean {
    if (this.#node === undefined) return false
    const { driver, listeners } = this.#options
    return this.#successor !== undefined || othersIn(this.#node, driver.read(), listeners).some(isOpen)
  }

  close(): void {
    this.#rules.close()
  }

  /**
   * An upgrade starts the new process while the old one serves: its rules lead to listeners of its own. To restore ours would
   * take the clients from it, and it would restore its rules in turn. The listeners stay open for clients that came through them.
   */
  #yieldTo(others: readonly ListenAddress[]): boolean {
    const before = this.#successor
    this.#successor = others.find(isOpen)
    const isYielding = this.#successor !== undefined
    this.#retryMs = isYielding ? this.#options.clock.monotonicNow() + RETRY_MS : Infinity
    if (isYielding !== (before !== undefined)) this.#options.onSuccessor(this.#successor)
    return isYielding
  }

  /** Opens or changes what service ports need. One object may have tens of thousands. */
  *#serving(views: readonly ServicePortView[], preferredPort: PreferredPort): Steps<Map<ServicePortName, Service>> {
    const services = new Map<ServicePortName, Service>()
    const crowded = new Set<string>()
    let done = 0
    for (const view of views) {
      if (done >= PORTS_OF_A_STEP) {
        done = 0
        yield
      }
      done += 1 + Math.floor(view.backends.length / BACKENDS_LIKE_A_PORT)
      const service = `${view.namespace}/${view.service}`
      const refused = new Map<EntranceId, Refusal>()
      const open = new Map<EntranceId, ListenAddress>()
      for (const [list, { backends, seenAs }] of listsOf(view)) {
        const name = servedName(view, list)
        const reasons = this.#options.listeners.serve({
          name,
          service,
          protocol: view.protocol === 'UDP' ? 'UDP' : 'TCP',
          backends: [...backends],
          affinitySeconds: view.frontends[0]?.affinitySeconds,
          hashBy: hashBy(backends.balance),
          seenAs,
          preferredPort: (each) => preferredPort(view, { list, seenAs: each }),
        })
        for (const each of seenAs) {
          const id = entranceId({ list, seenAs: each })
          const refusal = reasons.get(each)
          const listener = this.#options.listeners.find(name, each)
          if (listener !== undefined) open.set(id, listener)
          if (refusal === undefined) continue
          // Reported once, and of a service with thousands of ports once; those for want of file descriptors together.
          const isNews = this.#services.get(view.name)?.refused.get(id)?.lacks !== refusal.lacks
          const isReported = refusal.lacks === 'fds' || (refusal.lacks === 'share' && crowded.has(service))
          if (isNews && !isReported) this.#options.onRefused(view.name, refusal.reason)
          if (refusal.lacks === 'share') crowded.add(service)
          refused.set(id, refusal)
        }
      }
      // Where a port is missing, perhaps a listener without rules has it.
      const { stays, leaving } = this.#staying(view, refused.size === 0)
      services.set(view.name, { view, port: { ...view, listeners: open, leaving }, refused, stays })
    }
    return services
  }

  /** Which listeners stay open. Those to which rules lead no more get the backends that still serve. */
  #staying(
    view: ServicePortView,
    mayLeave: boolean,
  ): { readonly stays: Service['stays']; readonly leaving: readonly ListenAddress[] } {
    const stays = new Map<string, ReadonlySet<SeenAs>>()
    const leaving: ListenAddress[] = []
    const wanted = listsOf(view)
    for (const list of LISTS) {
      const name = servedName(view, list)
      const seenAs = wanted.get(list)?.seenAs
      if (seenAs !== undefined) stays.set(name, seenAs)
      const served = this.#options.listeners.get(name)
      if (served === undefined || view.protocol !== 'UDP' || !mayLeave) continue
      if (seenAs === undefined && !this.#servesOn(view, served)) continue
      stays.set(name, new Set([...(seenAs ?? []), ...served.listeners.keys()]))
      for (const [each, listener] of served.listeners) if (seenAs?.has(each) !== true) leaving.push(listener)
    }
    return { stays, leaving }
  }

  /** For a list that is no longer wanted: false when none of its backends serves any more. */
  #servesOn(view: ServicePortView, { pool }: Served): boolean {
    const serving = new Set(view.serving)
    const backends = pool.backends().filter(({ ip, port }) => serving.has(joinHostPort(ip, port)))
    if (backends.length === 0) return false
    pool.update({ backends, affinitySeconds: view.frontends[0]?.affinitySeconds })
    return true
  }

  /** Before the sync: afterwards a listener may have gone, and flows to it would stay in the connection tracker. */
  #answerersOf(changes: readonly ServicePortChange[]): Answerers {
    return new Map(
      changes.flatMap(({ name, before }) =>
        before?.protocol === 'UDP' ? [[name, this.flowTargets(before)] as const] : [],
      ),
    )
  }

  /** Includes the changes sent to the data path, in a notation of our own: no tool has commands for them. */
  #withListeners(stats: SyncStats, views: readonly ServicePortView[]): SyncStats {
    const { listeners } = this.#options
    const commands = function* () {
      yield* stats.commands?.() ?? []
      for (const view of views) {
        for (const name of LISTS.map((list) => servedName(view, list))) {
          const served = listeners.get(name)
          if (served !== undefined) yield formatServed(name, served)
        }
      }
    }
    const { transactions, operations, bytes, gone } = stats
    return { transactions, operations, bytes, commands, ...(gone !== undefined && { gone }) }
  }

  /** Reports the missing listeners, and plans when to try their ports again: the kernel does not notify when one is free. */
  #synced(): void {
    let listeners = 0
    let first: string | undefined
    for (const name of this.#refused) {
      for (const { lacks } of this.#services.get(name)!.refused.values()) {
        if (lacks !== 'fds') continue
        listeners++
        first ??= name
      }
    }
    const retryInMs = this.#mayOpenMore ? RETRY_SOON_MS : RETRY_MS
    this.#retryMs = this.#refused.size > 0 ? this.#options.clock.monotonicNow() + retryInMs : Infinity
    // At the end there are no listeners at all, which is not news.
    if (!this.#isEnding) this.#options.onMissing({ listeners, first })
  }

  get #againInMs(): number | undefined {
    return this.#retryMs === Infinity ? undefined : Math.max(0, this.#retryMs - this.#options.clock.monotonicNow())
  }

  #set(name: ServicePortName, service: Service | undefined): void {
    if (service === undefined) this.#services.delete(name)
    else this.#services.set(name, service)
    this.#refused.delete(name)
    if (service !== undefined && service.refused.size > 0) this.#refused.add(name)
  }

  /** Some of the service ports for which there was no port: perhaps there is one now. */
  #retries(changing: ReadonlyMap<ServicePortName, unknown>): ServicePortName[] {
    const retries: ServicePortName[] = []
    for (const name of this.#refused) {
      if (changing.has(name)) continue
      retries.push(name)
      if (retries.length === RETRIES_AT_ONCE) break
    }
    return retries
  }

  /** Closes what the rules no longer lead to. */
  *#closing(ports: readonly PortChange<ServedPort>[], services: ReadonlyMap<ServicePortName, Service>): Steps<void> {
    for (const [i, { name, before }] of ports.entries()) {
      if (i > 0 && i % PORTS_OF_A_STEP === 0) yield
      const service = services.get(name)
      if (before !== undefined) this.#closeUnused(before, service)
      this.#set(name, service)
    }
  }

  #closeUnused(before: ServicePortView, after: Service | undefined): void {
    for (const list of LISTS) {
      const name = servedName(before, list)
      this.#options.listeners.keep(name, after?.stays.get(name) ?? NO_LISTENER)
    }
  }

  #closeAllBut(services: Iterable<Service>): void {
    const { listeners } = this.#options
    const stays = new Map(Array.from(services, (service) => [...service.stays]).flat())
    for (const [name] of listeners.entries()) listeners.keep(name, stays.get(name) ?? NO_LISTENER)
  }
}

function formatServed(name: string, { listeners, pool }: Served): string {
  const at = Array.from(listeners.values(), ({ address, port }) => joinHostPort(address, port))
  const to = pool.backends().map(({ ip, port }) => joinHostPort(ip, port))
  return `# ${name}: ${at.join(', ')} carries to ${to.join(', ') || 'nowhere'}`
}

const NO_LISTENER: ReadonlySet<SeenAs> = new Set()
/** Listeners are opened in some milliseconds. */
const PORTS_OF_A_STEP = 100
/** So many backends in a list take as long as a listener: threads get a copy. */
const BACKENDS_LIKE_A_PORT = 50
/** How often it is tried to open a listener for which there was no port. */
const RETRY_MS = 5000
const RETRY_SOON_MS = 10
/** There may be tens of thousands, of one object, and others wait for the sync that retries them. */
const RETRIES_AT_ONCE = 100
const SUCCEEDED: SyncStats = { transactions: 0, operations: 0, bytes: 0, isSucceeded: true }
const NOTHING_DONE = { transactions: 0, operations: 0, bytes: 0 }

/**
 * The listeners of another process, when most of those in a table are not ours. One of them alone may be from a change that an
 * elder process made just before it noticed us.
 */
function othersIn({ family }: NodeView, table: Table | undefined, listeners: Listeners): ListenAddress[] {
  const all = listenersIn(family, table)
  const ours = listeners.ports()
  const others = all.filter(({ port }) => !ours.has(port))
  return others.length > all.length - others.length ? others : []
}

/** Whether another socket is there: of a TCP listener, or of a UDP one. */
function isOpen({ address, port }: ListenAddress): boolean {
  return (['TCP', 'UDP'] as const).some((protocol) => isPortTaken({ address, port, protocol }))
}
