// Programs the userspace mode for one IP family: doors to each list of backends, and the rules that lead there.
//
// A door comes before its rules and goes after them. Rules do not change when endpoints do; the data path is told.

import type { Clock, Timer } from '../../lib/clock.ts'
import { joinHostPort } from '../../lib/ip.ts'
import type { NodeView, Policy, ServicePortChange, ServicePortView } from '../../model/types.ts'
import { type Entrance, listsOf, type SeenAs } from './plan/entrance.ts'
import { userspacePlanner } from './plan/planner.ts'
import { type DoorAddress, knownPorts } from './plan/service.ts'
import type { Table } from '../../nftables/types.ts'
import type { Pool } from './data-path/control-pool.ts'
import type { Listeners } from './data-path/listeners.ts'
import type { TableDriver } from '../../nftables/table-driver.ts'
import { TableProgrammer } from '../shared/table-programmer.ts'
import type { Programmer, SyncStats } from '../programmer.ts'

export interface UserspaceProgrammerOptions {
  readonly listeners: Listeners
  readonly driver: TableDriver
  readonly clock: Clock
  /** Called when a service port cannot be served. */
  readonly onRefused: (name: string, reason: string) => void
  /** The address of this machine on which clients of the node are served. */
  readonly listenAddress: (node: NodeView) => string
}

type PreferredPort = (view: ServicePortView, entrance: Entrance) => number | undefined

/** Entrances of a service port that could not be opened. */
interface Refusal {
  readonly view: ServicePortView
  readonly entrances: ReadonlySet<string>
}

export class UserspaceProgrammer implements Programmer {
  readonly #options: UserspaceProgrammerOptions
  readonly #rules: TableProgrammer
  /** By the names of service ports: what the rules in the kernel know. */
  readonly #refused = new Map<string, Refusal>()
  /** The same for views that are being programmed. */
  #fresh: ReadonlyMap<ServicePortView, Refusal> = new Map()
  #node: NodeView | undefined
  #isWithdrawn = false
  /** What is served on an address that the node had before, until the rules lead there no more. */
  readonly #left: Pool[] = []
  #retryTimer: Timer | undefined
  /** What was read back, for the rules' programmer to take. */
  #readBack: { readonly table: Table | undefined } | undefined

  constructor(options: UserspaceProgrammerOptions) {
    this.#options = options
    const { driver, clock } = options
    const planner = userspacePlanner((view, entrance) => this.#find(view, entrance))
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
    const all = [...changes, ...this.#retries(changes)]
    this.#fresh = this.#serve(
      all.flatMap(({ after }) => after ?? []),
      () => undefined,
    )
    const stats = this.#rules.sync(node, all)
    for (const { name, before, after } of all) {
      this.#noteRefusal(name, after)
      this.#shutUnused(before, after)
    }
    this.#fresh = new Map()
    this.#retryLater(node)
    return stats
  }

  syncAll(node: NodeView, views: Iterable<ServicePortView>): SyncStats {
    if (this.#isWithdrawn) return NOTHING_DONE
    const { listeners, driver, listenAddress } = this.#options
    this.#node = node
    const table = driver.read()
    this.#readBack = { table }
    this.#left.push(...listeners.moveTo(listenAddress(node)))
    listeners.lookForPorts()
    const all = [...views]
    this.#fresh = this.#serve(all, knownPorts(node.family, table))
    const stats = this.#rules.syncAll(node, all)
    this.#shutAllBut(all)
    for (const pool of this.#left.splice(0)) pool.close()
    this.#refused.clear()
    for (const view of all) this.#noteRefusal(view.name, view)
    this.#fresh = new Map()
    this.#retryLater(node)
    return stats
  }

  /** Where UDP flows of a service port go while it is served. */
  flowTargets(view: ServicePortView): string[] {
    return Array.from(listsOf(view)).flatMap(([list, { seenAs }]) =>
      Array.from(seenAs).flatMap((each) => {
        const door = this.#find(view, { list, seenAs: each })
        return door === undefined ? [] : [joinHostPort(door.address, door.port)]
      }),
    )
  }

  /**
   * New connections are no longer led to the proxy; what translates those that are open stays. Where the rules cannot be
   * changed the doors close all the same: a client that is led there is refused instead of being cut off later.
   */
  withdraw(): void {
    try {
      if (this.#node !== undefined) this.syncAll(this.#node, [])
    } finally {
      this.#isWithdrawn = true
      this.#retryTimer?.cancel()
      this.#options.listeners.releaseAll()
      for (const pool of this.#left.splice(0)) pool.close()
    }
  }

  close(): void {
    this.#retryTimer?.cancel()
    this.#rules.close()
  }

  /** Opens or changes what service ports need; returns what could not be opened. */
  #serve(views: readonly ServicePortView[], preferredPort: PreferredPort): Map<ServicePortView, Refusal> {
    const refusals = new Map<ServicePortView, Refusal>()
    for (const view of views) {
      const entrances = new Set<string>()
      for (const [list, { backends, seenAs }] of listsOf(view)) {
        const refused = this.#options.listeners.serve({
          name: nameOf(view, list),
          protocol: view.protocol === 'UDP' ? 'UDP' : 'TCP',
          backends,
          affinitySeconds: view.frontends[0]?.affinitySeconds,
          seenAs,
          preferredPort: (each) => preferredPort(view, { list, seenAs: each }),
        })
        for (const [each, reason] of refused) this.#refuse({ view, entrances }, { list, seenAs: each }, reason)
      }
      refusals.set(view, { view, entrances })
    }
    return refusals
  }

  /** Said once. */
  #refuse({ view, entrances }: { view: ServicePortView; entrances: Set<string> }, entrance: Entrance, reason: string) {
    const id = idOf(entrance)
    entrances.add(id)
    if (this.#refused.get(view.name)?.entrances.has(id) !== true) this.#options.onRefused(view.name, reason)
  }

  #noteRefusal(name: string, view: ServicePortView | undefined): void {
    const refusal = view === undefined ? undefined : this.#fresh.get(view)
    if (refusal === undefined || refusal.entrances.size === 0) this.#refused.delete(name)
    else this.#refused.set(name, refusal)
  }

  /** The kernel does not tell when a port becomes free. */
  #retryLater(node: NodeView): void {
    this.#retryTimer?.cancel()
    if (this.#refused.size === 0) return
    this.#retryTimer = this.#options.clock.setTimeout(() => {
      try {
        this.#options.listeners.lookForPorts()
        this.sync(node, [])
      } catch {
        // The next sync meets it again, and reports it.
      }
    }, RETRY_MS)
  }

  /** Service ports for which there was no port, again: perhaps there is one now. */
  #retries(changes: readonly ServicePortChange[]): ServicePortChange[] {
    if (this.#refused.size === 0) return []
    const changing = new Set(changes.map(({ name }) => name))
    return [...this.#refused]
      .filter(([name]) => !changing.has(name))
      .map(([name, { view }]) => ({ name, before: view, after: { ...view } }))
  }

  #shutUnused(before: ServicePortView | undefined, after: ServicePortView | undefined): void {
    if (before === undefined) return
    const wanted = new Map<string, ReadonlySet<SeenAs>>()
    if (after !== undefined) for (const [list, { seenAs }] of listsOf(after)) wanted.set(nameOf(after, list), seenAs)
    for (const list of listsOf(before).keys()) {
      const name = nameOf(before, list)
      this.#options.listeners.keep(name, wanted.get(name) ?? NO_DOOR)
    }
  }

  #shutAllBut(views: readonly ServicePortView[]): void {
    const { listeners } = this.#options
    const wanted = new Map<string, ReadonlySet<SeenAs>>()
    for (const view of views) for (const [list, { seenAs }] of listsOf(view)) wanted.set(nameOf(view, list), seenAs)
    for (const [name] of listeners.entries()) listeners.keep(name, wanted.get(name) ?? NO_DOOR)
  }

  #find(view: ServicePortView, entrance: Entrance): DoorAddress | undefined {
    const refusal = this.#fresh.get(view) ?? this.#refused.get(view.name)
    if (refusal?.entrances.has(idOf(entrance)) === true) return undefined
    return this.#options.listeners.find(nameOf(view, entrance.list), entrance.seenAs)
  }

  #takeReadBack(): Table | undefined {
    const table = this.#readBack === undefined ? this.#options.driver.read() : this.#readBack.table
    this.#readBack = undefined
    return table
  }
}

const NO_DOOR: ReadonlySet<SeenAs> = new Set()
/** How often it is tried to open a door for which there was no port. */
const RETRY_MS = 5000
const NOTHING_DONE: SyncStats = { transactions: 0, operations: 0, bytes: 0 }

/** What a list is served under. */
function nameOf({ name, protocol }: ServicePortView, list: Policy): string {
  return list === 'Cluster' ? `${name}/${protocol}` : `${name}/${protocol} (Local)`
}

function idOf({ list, seenAs }: Entrance): string {
  return `${list} ${seenAs}`
}
