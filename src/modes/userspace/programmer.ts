// Programs the userspace mode for one IP family: doors to each list of backends, and the rules that lead there.
//
// A door comes before its rules and goes after them. Rules do not change when endpoints do; the data path is told.
//
// A door of UDP to which rules lead no more stays open for the clients who came through it, as long as their backends serve:
// policies choose for new clients and do not disturb others, as in the other modes.

import type { Clock, Timer } from '../../lib/clock.ts'
import { joinHostPort } from '../../lib/ip.ts'
import type { NodeView, ServicePortChange, ServicePortView } from '../../model/types.ts'
import type { Closed } from './closed-doors.ts'
import { type Entrance, listsOf } from './plan/entrance.ts'
import { userspacePlanner } from './plan/planner.ts'
import { type DoorAddress, doorsIn, knownPorts } from './plan/service.ts'
import type { Table } from '../../nftables/types.ts'
import type { Pool } from '../../data-path/control-pool.ts'
import type { Listeners, Refusal, Served } from '../../data-path/listeners.ts'
import type { SeenAs } from '../../data-path/seen-as.ts'
import { isPortTaken } from '../../data-path/sockets.ts'
import type { TableDriver } from '../../nftables/table-driver.ts'
import { TableProgrammer } from '../../table-sync/table-programmer.ts'
import type { FinishStats, Programmer, SyncStats } from '../../reconcile/programmer.ts'
import { LISTS, servedName } from './served-name.ts'

export interface UserspaceProgrammerOptions {
  readonly listeners: Listeners
  readonly driver: TableDriver
  readonly clock: Clock
  /** Called when a service port cannot be served, unless for want of file descriptors. */
  readonly onRefused: (name: string, reason: string) => void
  /** Called after each sync with the doors for which there was no file descriptor. */
  readonly onClosedDoors: (closed: Closed) => void
  /** The address of this machine on which clients of the node are served. */
  readonly listenAddress: (node: NodeView) => string
  /** Called when a sync that nobody asked for has failed: then all is to be synced again. */
  readonly onUnsure: () => void
  /** Called when another process has taken over, and with undefined when that one is gone: then all is to be synced again. */
  readonly onSuccessor: (door: DoorAddress | undefined) => void
}

type PreferredPort = (view: ServicePortView, entrance: Entrance) => number | undefined

/** How a service port is served. */
interface Service {
  readonly view: ServicePortView
  /** Entrances that could not be opened, and why. */
  readonly refused: ReadonlyMap<string, Refusal>
  /** The doors that stay open, by list. */
  readonly stays: ReadonlyMap<string, ReadonlySet<SeenAs>>
  /** Those of them to which no rule leads. */
  readonly leaving: readonly DoorAddress[]
}

export class UserspaceProgrammer implements Programmer {
  readonly #options: UserspaceProgrammerOptions
  readonly #rules: TableProgrammer
  /** By the names of service ports, where there is something to know: what the rules in the kernel know. */
  readonly #known = new Map<string, Service>()
  /** The same for views that are being programmed. */
  #fresh: ReadonlyMap<ServicePortView, Service> = new Map()
  #node: NodeView | undefined
  /** The rules have led here: a process that only tried to be led to has nobody's connections, and no successor. */
  #hasServed = false
  #isWithdrawn = false
  #isEnding = false
  #isTold = false
  /** What is served on an address that the node had before, until the rules lead there no more. */
  readonly #left: Pool[] = []
  #retryTimer: Timer | undefined
  /** The last retries have all had success: others may, too. */
  #mayOpenMore = false
  /** A door of the process that has taken over. */
  #successor: DoorAddress | undefined
  /** What was read back, for the rules' programmer to take. */
  #readBack: { readonly table: Table | undefined } | undefined

  constructor(options: UserspaceProgrammerOptions) {
    this.#options = options
    const { driver, clock } = options
    const planner = userspacePlanner({
      find: (view, entrance) => this.#find(view, entrance),
      leaving: (view) => this.#serviceOf(view)?.leaving ?? [],
    })
    const prefetched: TableDriver = {
      apply: (ops) => driver.apply(ops),
      read: () => this.#takeReadBack(),
      readElements: (set) => driver.readElements(set),
      close: () => driver.close(),
    }
    this.#rules = new TableProgrammer({ planner, driver: prefetched, clock })
  }

  sync(node: NodeView, changes: readonly ServicePortChange[]): SyncStats {
    if (this.#isWithdrawn) return NOTHING_DONE
    if (this.#successor !== undefined) return SUCCEEDED
    this.#options.listeners.lookForFds()
    const retries = this.#retries(changes)
    const all = [...changes, ...retries]
    this.#fresh = this.#serve(
      all.flatMap(({ after }) => after ?? []),
      () => undefined,
    )
    const stats = this.#told(
      this.#rules.sync(node, all),
      all.flatMap(({ after }) => after ?? []),
    )
    for (const { name, before, after } of all) {
      this.#shutUnused(before, after)
      this.#note(name, after)
    }
    this.#mayOpenMore = retries.length > 0 && retries.every(({ name }) => !this.#known.get(name)?.refused.size)
    this.#fresh = new Map()
    this.#tellClosedDoors()
    this.#retryLater(node)
    return stats
  }

  syncAll(node: NodeView, views: Iterable<ServicePortView>): SyncStats {
    if (this.#isWithdrawn) return NOTHING_DONE
    const { listeners, driver, listenAddress } = this.#options
    const table = driver.read()
    if (this.#hasServed && this.#yieldTo(otherDoors(node, table, listeners))) return SUCCEEDED
    this.#node = node
    this.#readBack = { table }
    this.#left.push(...listeners.moveTo(listenAddress(node)))
    listeners.lookForPorts()
    const all = [...views]
    this.#fresh = this.#serve(all, knownPorts(node.family, table))
    const stats = this.#told(this.#rules.syncAll(node, all), all)
    this.#hasServed = true
    this.#shutAllBut(all)
    for (const pool of this.#left.splice(0)) pool.close()
    this.#known.clear()
    for (const view of all) this.#note(view.name, view)
    this.#fresh = new Map()
    this.#tellClosedDoors()
    this.#retryLater(node)
    return stats
  }

  /** Nothing, while the rules are another's. */
  finish(): FinishStats | void | Promise<FinishStats> {
    if (!this.#isWithdrawn && this.#successor === undefined) return this.#rules.finish()
  }

  tellCommands(isTold: boolean): void {
    this.#isTold = isTold
    this.#rules.tellCommands(isTold)
  }

  /** Where UDP flows of a service port go at present, those that came before it changed included. */
  flowTargets(view: ServicePortView): string[] {
    return LISTS.flatMap((list) => {
      const doors = this.#options.listeners.get(servedName(view, list))?.listeners.values() ?? []
      return Array.from(doors, ({ address, port }) => joinHostPort(address, port))
    })
  }

  /**
   * New connections are no longer led to the proxy; what translates those that are open stays. Where the rules cannot be
   * changed the doors close all the same: a client that is led there is refused instead of being cut off later.
   */
  withdraw(): void {
    this.#isEnding = true
    try {
      const node = this.#hasServed ? this.#node : undefined
      if (node !== undefined && this.#successor === undefined) this.syncAll(node, [])
    } finally {
      this.#isWithdrawn = true
      this.#retryTimer?.cancel()
      this.#options.listeners.releaseAll()
      for (const pool of this.#left.splice(0)) pool.close()
    }
  }

  /** Whether the rules have led here. */
  get hasServed(): boolean {
    return this.#hasServed
  }

  /** Whether the rules lead to doors of another process, which must keep them when this one ends. */
  isSucceeded(): boolean {
    if (this.#node === undefined) return false
    const { driver, listeners } = this.#options
    return this.#successor !== undefined || otherDoors(this.#node, driver.read(), listeners).some(isOpen)
  }

  close(): void {
    this.#retryTimer?.cancel()
    this.#rules.close()
  }

  /**
   * An upgrade starts the new process while the old one serves: its rules lead to doors of its own. To restore ours would
   * take the clients from it, and it would restore its rules in turn. The doors stay open for clients that came through them.
   */
  #yieldTo(doors: readonly DoorAddress[]): boolean {
    const before = this.#successor
    this.#successor = doors.find(isOpen)
    if (this.#successor === undefined) {
      if (before !== undefined) this.#options.onSuccessor(undefined)
      return false
    }
    if (before === undefined) this.#options.onSuccessor(this.#successor)
    this.#retryTimer?.cancel()
    this.#retryTimer = this.#options.clock.setTimeout(() => this.#lookForSuccessor(), RETRY_MS)
    return true
  }

  /** Perhaps it is gone, and with it its doors. */
  #lookForSuccessor(): void {
    this.#yieldTo(this.#successor === undefined ? [] : [this.#successor])
  }

  /** Opens or changes what service ports need. */
  #serve(views: readonly ServicePortView[], preferredPort: PreferredPort): Map<ServicePortView, Service> {
    const services = new Map<ServicePortView, Service>()
    const crowded = new Set<string>()
    for (const view of views) {
      const service = `${view.namespace}/${view.service}`
      const refused = new Map<string, Refusal>()
      for (const [list, { backends, seenAs }] of listsOf(view)) {
        const reasons = this.#options.listeners.serve({
          name: servedName(view, list),
          service,
          protocol: view.protocol === 'UDP' ? 'UDP' : 'TCP',
          backends: [...backends],
          affinitySeconds: view.frontends[0]?.affinitySeconds,
          seenAs,
          preferredPort: (each) => preferredPort(view, { list, seenAs: each }),
        })
        for (const [each, refusal] of reasons) {
          const entrance = idOf({ list, seenAs: each })
          refused.set(entrance, refusal)
          // Said once, and of a service with thousands of ports once; those for want of file descriptors are said together.
          const isNews = this.#known.get(view.name)?.refused.get(entrance)?.lacks !== refusal.lacks
          const isSaid = refusal.lacks === 'fds' || (refusal.lacks === 'share' && crowded.has(service))
          if (isNews && !isSaid) this.#options.onRefused(view.name, refusal.reason)
          if (refusal.lacks === 'share') crowded.add(service)
        }
      }
      // Where a port is missing, perhaps such a door has it.
      services.set(view, { view, refused, ...this.#staying(view, refused.size === 0) })
    }
    return services
  }

  /** Which doors stay open, and tells those to which rules lead no more which of their backends still serve. */
  #staying(view: ServicePortView, mayLeave: boolean): Pick<Service, 'stays' | 'leaving'> {
    const stays = new Map<string, ReadonlySet<SeenAs>>()
    const leaving: DoorAddress[] = []
    const wanted = listsOf(view)
    for (const list of LISTS) {
      const name = servedName(view, list)
      const seenAs = wanted.get(list)?.seenAs
      if (seenAs !== undefined) stays.set(name, seenAs)
      const served = this.#options.listeners.get(name)
      if (served === undefined || view.protocol !== 'UDP' || !mayLeave) continue
      if (seenAs === undefined && !this.#servesOn(view, served)) continue
      stays.set(name, new Set([...(seenAs ?? []), ...served.listeners.keys()]))
      for (const [each, door] of served.listeners) if (seenAs?.has(each) !== true) leaving.push(door)
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

  /** With what the data path was told: no other program has words for it. */
  #told(stats: SyncStats, views: readonly ServicePortView[]): SyncStats {
    if (!this.#isTold) return stats
    const lines = views.flatMap((view) =>
      LISTS.flatMap((list) => {
        const served = this.#options.listeners.get(servedName(view, list))
        return served === undefined ? [] : [formatServed(servedName(view, list), served)]
      }),
    )
    return { ...stats, commands: [...(stats.commands ?? []), ...lines.slice(0, MOST_TOLD)] }
  }

  #note(name: string, view: ServicePortView | undefined): void {
    const service = view === undefined ? undefined : this.#fresh.get(view)
    this.#known.delete(name)
    if (service !== undefined && (service.refused.size > 0 || service.leaving.length > 0))
      this.#known.set(name, service)
  }

  #tellClosedDoors(): void {
    let doors = 0
    let first: string | undefined
    for (const [name, { refused }] of this.#known) {
      for (const { lacks } of refused.values()) {
        if (lacks !== 'fds') continue
        doors++
        first ??= name
      }
    }
    // At the end there are no doors at all, which is not news.
    if (!this.#isEnding) this.#options.onClosedDoors({ doors, first })
  }

  /** Those that were tried last come last. */
  *#refused(): Generator<readonly [string, Service]> {
    for (const each of this.#known) if (each[1].refused.size > 0) yield each
  }

  /** The kernel does not tell when a port becomes free. */
  #retryLater(node: NodeView): void {
    this.#retryTimer?.cancel()
    if (this.#refused().next().done === true) return
    this.#retryTimer = this.#options.clock.setTimeout(
      () => {
        try {
          this.#options.listeners.lookForPorts()
          this.sync(node, [])
        } catch {
          // What is in the kernel is not known any more, and nobody else asks for a sync now.
          this.#options.onUnsure()
        }
      },
      this.#mayOpenMore ? RETRY_SOON_MS : RETRY_MS,
    )
  }

  /** Some of the service ports for which there was no port, again: perhaps there is one now. */
  #retries(changes: readonly ServicePortChange[]): ServicePortChange[] {
    const retries: ServicePortChange[] = []
    let changing: ReadonlySet<string> | undefined
    for (const [name, { view }] of this.#refused()) {
      changing ??= new Set(changes.map((change) => change.name))
      if (changing.has(name)) continue
      retries.push({ name, before: view, after: { ...view } })
      if (retries.length === RETRIES_AT_ONCE) break
    }
    return retries
  }

  #shutUnused(before: ServicePortView | undefined, after: ServicePortView | undefined): void {
    if (before === undefined) return
    const stays = after && this.#fresh.get(after)?.stays
    for (const list of LISTS) {
      const name = servedName(before, list)
      this.#options.listeners.keep(name, stays?.get(name) ?? NO_DOOR)
    }
  }

  #shutAllBut(views: readonly ServicePortView[]): void {
    const { listeners } = this.#options
    const stays = new Map(views.flatMap((view) => [...(this.#fresh.get(view)?.stays ?? [])]))
    for (const [name] of listeners.entries()) listeners.keep(name, stays.get(name) ?? NO_DOOR)
  }

  #find(view: ServicePortView, entrance: Entrance): DoorAddress | undefined {
    if (this.#serviceOf(view)?.refused.has(idOf(entrance)) === true) return undefined
    return this.#options.listeners.find(servedName(view, entrance.list), entrance.seenAs)
  }

  #serviceOf(view: ServicePortView): Service | undefined {
    return this.#fresh.get(view) ?? this.#known.get(view.name)
  }

  #takeReadBack(): Table | undefined {
    const table = this.#readBack === undefined ? this.#options.driver.read() : this.#readBack.table
    this.#readBack = undefined
    return table
  }
}

/** So many lists are put into words. */
const MOST_TOLD = 40

function formatServed(name: string, { listeners, pool }: Served): string {
  const at = Array.from(listeners.values(), ({ address, port }) => joinHostPort(address, port))
  const to = pool.backends().map(({ ip, port }) => joinHostPort(ip, port))
  return `# ${name}: ${at.join(', ')} carries to ${to.join(', ') || 'nowhere'}`
}

const NO_DOOR: ReadonlySet<SeenAs> = new Set()
/** How often it is tried to open a door for which there was no port. */
const RETRY_MS = 5000
const RETRY_SOON_MS = 10
/** There may be tens of thousands, of one object, and others wait for the sync that retries them. */
const RETRIES_AT_ONCE = 100
const SUCCEEDED: SyncStats = { transactions: 0, operations: 0, bytes: 0, isSucceeded: true }
const NOTHING_DONE: SyncStats = { transactions: 0, operations: 0, bytes: 0 }

/**
 * The doors of another process, when most of those in a table are not ours. One of them alone may be from a change that an
 * elder process made just before it noticed us.
 */
function otherDoors({ family }: NodeView, table: Table | undefined, listeners: Listeners): DoorAddress[] {
  const all = doorsIn(family, table)
  const ours = listeners.ports()
  const others = all.filter(({ port }) => !ours.has(port))
  return others.length > all.length - others.length ? others : []
}

/** Whether another socket is there: of a TCP door, or of a UDP one. */
function isOpen({ address, port }: DoorAddress): boolean {
  return (['TCP', 'UDP'] as const).some((protocol) => isPortTaken({ address, port, protocol }))
}

function idOf({ list, seenAs }: Entrance): string {
  return `${list} ${seenAs}`
}
