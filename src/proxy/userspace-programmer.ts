// Programs the userspace mode for one IP family: a listener for each list of backends, and the rules that lead there.
//
// The listener comes before its rules and goes after them. Rules do not change when endpoints do; the data path is told.

import { joinHostPort } from '../lib/ip.ts'
import type { Backend, NodeView, ServicePortChange, ServicePortView, Verdict } from '../model/types.ts'
import { userspaceMode } from '../modes/userspace/mode.ts'
import { type List, type ListenerAddress, listenerPorts } from '../modes/userspace/service.ts'
import type { Table } from '../state/nftables/types.ts'
import type { Clock } from '../lib/clock.ts'
import type { Listeners } from '../userspace/listeners.ts'
import { NftablesProgrammer, type TableDriver } from './nftables-programmer.ts'
import type { Programmer, SyncStats } from './programmer.ts'

export interface UserspaceProgrammerOptions {
  readonly listeners: Listeners
  readonly driver: TableDriver
  readonly clock: Clock
  /** Called when a list of a service port cannot be served. */
  readonly onRefused: (name: string, reason: string) => void
  /** The address of this machine on which clients of the node are served. */
  readonly listenAddress: (node: NodeView) => string
}

/** What a service port wants served, and under which name. */
interface WantedList {
  readonly list: List
  readonly name: string
  readonly backends: readonly Backend[]
}

export class UserspaceProgrammer implements Programmer {
  readonly #options: UserspaceProgrammerOptions
  readonly #rules: NftablesProgrammer
  /** Lists for which there was no port, by service port: what the rules in the kernel know. */
  readonly #unserved = new Map<string, Unserved>()
  /** The same for views that are being programmed. */
  #fresh: ReadonlyMap<ServicePortView, Unserved> = new Map()
  #node: NodeView | undefined
  #isWithdrawn = false
  /** What was read back last, for the rules' programmer to take. */
  #readBack: { readonly table: Table | undefined } | undefined

  constructor(options: UserspaceProgrammerOptions) {
    this.#options = options
    const { driver, clock } = options
    const planner = userspaceMode((view, list) => this.#find(view, list))
    const prefetched: TableDriver = {
      apply: (ops) => driver.apply(ops),
      read: () => this.#takeReadBack(),
      readElements: (set) => driver.readElements(set),
      close: () => driver.close(),
    }
    this.#rules = new NftablesProgrammer({ planner, driver: prefetched, clock })
  }

  sync(node: NodeView, changes: readonly ServicePortChange[]): SyncStats {
    if (this.#isWithdrawn) return NOTHING_DONE
    const { listeners } = this.#options
    const all = [...changes, ...this.#retries(changes)]
    const fresh = new Map<ServicePortView, Unserved>()
    for (const { after } of all)
      if (after !== undefined)
        fresh.set(
          after,
          this.#serve(after, () => undefined),
        )
    this.#fresh = fresh
    const stats = this.#rules.sync(node, all)
    for (const { name, before, after } of all) {
      this.#noteUnserved(name, after)
      const wanted = new Set(after === undefined ? [] : listsOf(after).map((each) => each.name))
      for (const gone of before === undefined ? [] : listsOf(before)) {
        if (!wanted.has(gone.name)) listeners.release(gone.name)
      }
    }
    this.#fresh = new Map()
    return stats
  }

  syncAll(node: NodeView, views: Iterable<ServicePortView>): SyncStats {
    if (this.#isWithdrawn) return NOTHING_DONE
    const { listeners, driver, listenAddress } = this.#options
    this.#node = node
    const table = driver.read()
    this.#readBack = { table }
    const left = listeners.moveTo(listenAddress(node))
    const known = listenerPorts(node.family, table)
    const all = [...views]
    const fresh = new Map<ServicePortView, Unserved>()
    for (const view of all)
      fresh.set(
        view,
        this.#serve(view, (list) => known(view, list)),
      )
    this.#fresh = fresh
    const stats = this.#rules.syncAll(node, all)
    const wanted = new Set(all.flatMap((view) => listsOf(view).map(({ name }) => name)))
    for (const [name] of listeners.entries()) if (!wanted.has(name)) listeners.release(name)
    for (const { pool } of left.values()) pool.close()
    this.#unserved.clear()
    for (const view of all) this.#noteUnserved(view.name, view)
    this.#fresh = new Map()
    return stats
  }

  /** Where UDP flows of a service port go while it is served. */
  flowTargets(view: ServicePortView): string[] {
    return listsOf(view).flatMap(({ list }) => {
      const listener = this.#find(view, list)
      return listener === undefined ? [] : [joinHostPort(listener.address, listener.port)]
    })
  }

  /** New connections are no longer led to the proxy; what translates those that are open stays. */
  withdraw(): void {
    if (this.#node !== undefined) this.syncAll(this.#node, [])
    this.#isWithdrawn = true
  }

  close(): void {
    this.#rules.close()
  }

  /** Opens or changes the listeners of a service port; returns the lists that could not be served. */
  #serve(view: ServicePortView, preferredPort: (list: List) => number | undefined): Unserved {
    const { listeners, onRefused } = this.#options
    const unserved = new Map<List, ServicePortView>()
    if (view.protocol === 'SCTP') return NOTHING
    const affinitySeconds = view.frontends[0]?.affinitySeconds
    for (const { list, name, backends } of listsOf(view)) {
      const wanted = { name, protocol: view.protocol, backends, affinitySeconds, preferredPort: preferredPort(list) }
      const reason = listeners.serve(wanted)
      if (reason === undefined) continue
      unserved.set(list, view)
      // Said once.
      if (this.#unserved.get(view.name)?.has(list) !== true) onRefused(name, reason)
    }
    return unserved
  }

  #noteUnserved(name: string, view: ServicePortView | undefined): void {
    const unserved = view === undefined ? undefined : this.#fresh.get(view)
    if (unserved === undefined || unserved.size === 0) this.#unserved.delete(name)
    else this.#unserved.set(name, unserved)
  }

  /** Service ports for which there was no port, again: perhaps there is one now. */
  #retries(changes: readonly ServicePortChange[]): ServicePortChange[] {
    if (this.#unserved.size === 0) return []
    const changing = new Set(changes.map(({ name }) => name))
    return [...this.#unserved].flatMap(([name, lists]) => {
      const [view] = lists.values()
      return changing.has(name) || view === undefined ? [] : [{ name, before: view, after: { ...view } }]
    })
  }

  #find(view: ServicePortView, list: List): ListenerAddress | undefined {
    const unserved = this.#fresh.get(view) ?? this.#unserved.get(view.name)
    return unserved?.has(list) === true ? undefined : this.#options.listeners.find(nameOf(view, list))
  }

  #takeReadBack(): Table | undefined {
    const table = this.#readBack === undefined ? this.#options.driver.read() : this.#readBack.table
    this.#readBack = undefined
    return table
  }
}

/** Lists that are not served, each with the view that wants it. */
type Unserved = ReadonlyMap<List, ServicePortView>
const NOTHING: Unserved = new Map()
const NOTHING_DONE: SyncStats = { transactions: 0, operations: 0, bytes: 0 }

function nameOf({ name, protocol }: ServicePortView, list: List): string {
  return list === 'Cluster' ? `${name}/${protocol}` : `${name}/${protocol} (Local)`
}

/** The lists of backends that a service port's frontends use. */
function listsOf(view: ServicePortView): WantedList[] {
  if (view.protocol === 'SCTP') return []
  const lists = new Map<List, readonly Backend[]>()
  const note = (verdict: Verdict) => {
    if (verdict.kind === 'to') lists.set(verdict.policy, verdict.backends)
  }
  for (const { fromPods, fromNode, fromOthers } of view.frontends) {
    for (const { verdict } of [fromPods, fromNode, fromOthers]) note(verdict)
  }
  return Array.from(lists, ([list, backends]) => ({ list, name: nameOf(view, list), backends }))
}
