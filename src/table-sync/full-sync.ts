// Compares the whole table with the kernel's: at the start, after a failure, after a change by another program, and every hour.

import type { Steps } from '../lib/steps.ts'
import type { FrontendAddress, NodeView, ServicePortView } from '../model/types.ts'
import { buildTable, replaceTable, type Wanted } from '../nftables/build-table.ts'
import { formatOps } from '../nftables/format-ops.ts'
import type { Fragment, DynamicMap, TableBase } from '../nftables/fragment.ts'
import { nftFamily } from '../nftables/language.ts'
import { TableState } from '../nftables/table-state.ts'
import type { TableDriver } from '../nftables/table-driver.ts'
import type { Op, OwnTable, Table } from '../nftables/types.ts'
import { isAtWork, isOurs, ownTable, TableUpdate } from '../nftables/update-table.ts'
import { applyEachCounted } from './apply-counted.ts'
import { countPlaces, KernelLists } from './kernel-lists.ts'
import { type Places, placesAtMost } from './places.ts'
import type { FindElement, ListLengths, TablePlanner } from './table-planner.ts'
import { ServedBefore } from './served-before.ts'
import type { WriteLog } from '../reconcile/write-log.ts'

export interface FullSyncOptions<P extends ServicePortView> {
  readonly planner: TablePlanner<P>
  readonly driver: TableDriver
  readonly places: Places
  readonly node: NodeView
  readonly views: Iterable<P>
  /** How often in a row the kernel has refused the result of a comparison. */
  readonly refusals: number
  readonly stats: WriteLog
  /** The kernel's table, where the caller has read it already. */
  readonly found?: { readonly table: Table | undefined } | undefined
}

/** Another program may have left our table in a state that no difference can repair. After so many refusals we replace the table. */
const REFUSALS_TO_REPLACE = 2
/** Places that are compared in one step: some milliseconds. */
const PLACES_OF_A_STEP = 1000

export class FullSync<P extends ServicePortView> {
  /** Complete when the sync has succeeded. */
  readonly state: TableState
  /** The affinity maps of all service ports. */
  readonly dynamicMaps: DynamicMap[] = []
  readonly #options: FullSyncOptions<P>
  readonly #base: TableBase
  #served = new ServedBefore([])
  /** Set when the lists are too long to be read with the table. */
  #unread: ListLengths | undefined

  constructor(options: FullSyncOptions<P>) {
    this.#options = options
    this.#base = options.planner.base(options.node)
    this.state = new TableState(this.#base)
  }

  /** Reads the kernel's table, without the lists of backends where these are too long. */
  *reading(): Steps<OwnTable | undefined> {
    const { planner, driver, found } = this.#options
    if (found !== undefined) return found.table && ownTable(found.table)
    const { parts } = driver
    if (parts === undefined) {
      const table = driver.read()
      return table && ownTable(table)
    }
    const { lists } = planner
    const areWanted = (rest: Table) => lists === undefined || this.#areShort(lists.lengths(rest), parts.many)
    return yield* parts.read(lists && { sets: lists.maps, areWanted })
  }

  *programming(actual: OwnTable | undefined): Steps<void> {
    const { planner, refusals } = this.#options
    if (actual === undefined) return this.#applyEach(buildTable(this.#wanted(), this.state))
    this.#served = new ServedBefore(planner.servedUdp?.(actual) ?? [])
    if (!isAtWork(actual)) return this.#applyEach(this.#rebuild())
    if (refusals >= REFUSALS_TO_REPLACE || !isOurs(actual, this.#base)) {
      return this.#applyEach([replaceTable(this.#wanted(), this.state)])
    }
    yield* this.#updating(actual)
  }

  /** The frontends that went away while no proxy ran: their flows may still exist. */
  gone(): readonly FrontendAddress[] {
    return this.#served.rest()
  }

  /** The existing table has no active hooks, so it can be deleted first: no packet passes it. */
  *#rebuild(): Generator<readonly Op[]> {
    yield [{ op: 'deleteTable' }]
    yield* buildTable(this.#wanted(), this.state)
  }

  #wanted(): Wanted {
    const plan = (view: P) => this.#plan(view)
    const { views } = this.#options
    const fragments = (function* () {
      for (const view of views) yield plan(view)
    })()
    return { base: this.#base, fragments }
  }

  *#updating(actual: OwnTable): Steps<void> {
    const update = new TableUpdate(actual, this.#base, this.state)
    const lists = this.#unreadLists(actual, update)
    const find: FindElement = (set, key) => update.find(set, key)
    for (const views of inGroups(this.#options.views)) {
      lists?.read(views)
      for (const view of views) update.add(this.#plan(view, find))
      yield
    }
    if (lists !== undefined) yield* lists.readingRest()
    for (const ops of update.finish()) {
      this.#applyEach([ops])
      yield
    }
  }

  #areShort(lengths: ListLengths, many: number): boolean {
    // After a refusal, read everything: the element that blocks our change may be in a list.
    const areShort = this.#options.refusals > 0 || countPlaces(lengths) <= many
    this.#unread = areShort ? undefined : lengths
    return areShort
  }

  /** Undefined where the lists were read with the table. */
  #unreadLists(actual: OwnTable, update: TableUpdate): KernelLists | undefined {
    const lengths = this.#unread
    const { planner, driver } = this.#options
    if (lengths === undefined || driver.parts === undefined || planner.lists === undefined) return undefined
    return new KernelLists({ actual, lists: planner.lists, lengths, parts: driver.parts, update })
  }

  #plan(view: P, find?: FindElement): Fragment {
    const { planner, node, places } = this.#options
    this.#served.stays(view)
    let fragment = planner.service(node, view, { places })
    const planned = { family: node.family, port: view, fragment }
    if (find !== undefined && planner.adopt?.(find, planned, places) === true) {
      fragment = planner.service(node, view, { places })
    }
    this.dynamicMaps.push(...fragment.dynamicMaps)
    return fragment
  }

  #applyEach(transactions: Iterable<readonly Op[]>): void {
    const { planner, driver, node, stats } = this.#options
    const recorded = (function* () {
      for (const ops of transactions) {
        stats.keep(() => formatOps(nftFamily(node.family), planner.table, ops))
        yield ops
      }
    })()
    applyEachCounted(driver, recorded, stats)
  }
}

function* inGroups<P extends ServicePortView>(views: Iterable<P>): Generator<P[]> {
  let group: P[] = []
  let places = 0
  for (const view of views) {
    group.push(view)
    places += view.frontends.length * (placesAtMost(view.backends) + 1)
    if (places < PLACES_OF_A_STEP) continue
    yield group
    group = []
    places = 0
  }
  yield group
}
