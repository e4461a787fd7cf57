// Programs one nftables table: plans fragments, sends the differences, and keeps the table state.

import type { Clock } from '../lib/clock.ts'
import { KernelError } from '../lib/errors.ts'
import { inTurns, type Steps } from '../lib/steps.ts'
import type { NodeView, ServicePortView } from '../model/types.ts'
import type { TableDriver } from '../nftables/table-driver.ts'
import { Places, placesAtMost } from './places.ts'
import type { PortChange, TablePlanner } from './table-planner.ts'
import { diffingFragments, type FragmentChange } from '../nftables/diff-fragments.ts'
import { formatOps } from '../nftables/format-ops.ts'
import type { Fragment, DynamicMap } from '../nftables/fragment.ts'
import { nftFamily } from '../nftables/language.ts'
import type { TableState } from '../nftables/table-state.ts'
import { Transaction } from '../nftables/transaction.ts'
import type { Op, Table } from '../nftables/types.ts'
import type { AffinityReports, FinishStats, SyncStats } from '../reconcile/programmer.ts'
import { WriteLog } from '../reconcile/write-log.ts'
import { applyCounted } from './apply-counted.ts'
import { FullSync } from './full-sync.ts'
import { StaleEntries } from './stale-entries.ts'

export interface TableProgrammerOptions<P extends ServicePortView = ServicePortView> {
  readonly planner: TablePlanner<P>
  readonly driver: TableDriver
  readonly clock: Clock
  readonly counts?: FailureCounts
  /** For tables with dynamic maps. */
  readonly affinity?: AffinityReports
}

/** What the metrics show. */
export interface FailureCounts {
  syncFailed(): void
  /** Chains that no rule uses any more could not be deleted. */
  cleanupFailed(): void
}

/** How long after its last use a chain may still count as used (kernels before 6.2). */
const STALE_CHAIN_MS = 1000
/** Shared rules that no service uses any more are swept when there are this many. */
const UNUSED_RULES = 16

export class TableProgrammer<P extends ServicePortView = ServicePortView> {
  readonly #options: TableProgrammerOptions<P>
  #state: TableState | undefined
  readonly #places = new Places()
  readonly #staleEntries: StaleEntries
  /** Empty chains that wait to be deleted, each with the time when it became empty. */
  readonly #staleChains = new Map<string, number>()
  /** How many comparisons in a row the kernel refused. */
  #refusals = 0

  constructor(options: TableProgrammerOptions<P>) {
    this.#options = options
    this.#staleEntries = new StaleEntries({ ...options, reports: options.affinity })
  }

  /** Yields to other work between the parts of a large change. */
  sync(node: NodeView, changes: readonly PortChange<P>[]): Promise<SyncStats> {
    return inTurns(this.#sync(node, changes))
  }

  /**
   * Yields to other work between the parts of the comparison. The views must not change until it is done. `found`: the kernel's
   * table, where the caller has read it already.
   */
  syncAll(node: NodeView, views: Iterable<P>, found?: { readonly table: Table | undefined }): Promise<SyncStats> {
    return inTurns(this.#syncAll(node, views, found))
  }

  /** Deletes stale affinity entries and chains, and yields to other work in between. */
  finish(): Promise<FinishStats> {
    return inTurns(this.#finish())
  }

  close(): void {
    this.#options.driver.close()
  }

  *#sync(node: NodeView, changes: readonly PortChange<P>[]): Steps<SyncStats> {
    try {
      return yield* this.#programming(node, changes)
    } catch (error) {
      this.#options.counts?.syncFailed()
      throw error
    }
  }

  *#programming(node: NodeView, changes: readonly PortChange<P>[]): Steps<SyncStats> {
    const state = this.#state
    if (state === undefined) throw new Error('Cannot program changes: the table has not been programmed as a whole')
    const { planner, clock } = this.#options
    const stats = new WriteLog()
    const apply = (ops: readonly Op[]) => {
      if (ops.length === 0) return
      stats.keep(() => formatOps(nftFamily(node.family), planner.table, ops))
      applyCounted(this.#options.driver, ops, stats)
    }
    const places = this.#places
    const plan = function* (view: P, unlike: P | undefined): Steps<Fragment> {
      const context = { places, unlike }
      return planner.planning ? yield* planner.planning(node, view, context) : planner.service(node, view, context)
    }
    const pause = new Pauses()
    const fragmentChanges: FragmentChange[] = []
    for (const { before, after } of changes) {
      if (before !== undefined && after !== undefined) places.keep(before, after)
      const was = before && (yield* plan(before, after))
      if (pause.isDueAfter(before)) yield
      const now = after && (yield* plan(after, before))
      if (pause.isDueAfter(after)) yield
      fragmentChanges.push({ before: was, after: now })
    }
    // The state is wrong if the kernel refuses: it is set again after the last transaction.
    this.#state = undefined
    const { transactions, staleChains } = yield* diffingFragments(fragmentChanges, state)
    let last: readonly Op[] = []
    for (const ops of transactions) {
      if (last.length > 0) {
        apply(last)
        yield
      }
      last = ops
    }
    apply([...last, ...sweepRules(state)])
    this.#state = state
    for (const { before, after } of fragmentChanges) {
      for (const chain of after?.chains ?? []) this.#staleChains.delete(chain.name)
      const [was, now] = [before?.dynamicMaps ?? [], after?.dynamicMaps ?? []]
      if (was.length + now.length > 0) this.#staleEntries.changed(was, now, shrunk(before, after))
    }
    for (const chain of staleChains) this.#staleChains.set(chain, clock.monotonicNow())
    return stats
  }

  *#syncAll(
    node: NodeView,
    views: Iterable<P>,
    found: { readonly table: Table | undefined } | undefined,
  ): Steps<SyncStats> {
    const { planner, driver, counts } = this.#options
    const stats = new WriteLog()
    this.#state = undefined
    this.#staleChains.clear()
    try {
      const places = this.#places
      const sync = new FullSync({ planner, driver, places, node, views, refusals: this.#refusals, stats, found })
      const actual = yield* sync.reading()
      yield* this.#countingRefusals(sync.programming(actual))
      stats.gone = sync.gone()
      this.#state = sync.state
      this.#staleEntries.compared(actual === undefined ? [] : sync.dynamicMaps, { isChanged: stats.operations > 0 })
    } catch (error) {
      counts?.syncFailed()
      throw error
    }
    return stats
  }

  *#countingRefusals(programming: Steps<void>): Steps<void> {
    try {
      yield* programming
      this.#refusals = 0
    } catch (error) {
      if (!isShortage(error)) this.#refusals++
      throw error
    }
  }

  *#finish(): Steps<FinishStats> {
    const stats = new WriteLog()
    // This reports its failures itself, and does not throw.
    const againInMs = yield* this.#staleEntries.cleaning(stats)
    const hadStaleEntries = stats.operations > 0
    try {
      this.#deleteStaleChains(stats)
    } catch (error) {
      this.#options.counts?.cleanupFailed()
      throw error
    }
    const { transactions, operations, bytes } = stats
    return { transactions, operations, bytes, againInMs, hadStaleEntries }
  }

  /** Deletes all in one transaction. If that fails, one by one: one of them may still be in use, or gone already. */
  #deleteStaleChains(stats: WriteLog): void {
    const before = this.#options.clock.monotonicNow() - STALE_CHAIN_MS
    const due = Array.from(this.#staleChains).flatMap(([chain, sinceMs]) => (sinceMs > before ? [] : [chain]))
    try {
      this.#deleteChains(due, stats)
    } catch (error) {
      if (isShortage(error)) throw error
      const failures: unknown[] = []
      for (const chain of due) {
        try {
          this.#deleteChains([chain], stats)
        } catch (failure) {
          if (failure instanceof KernelError && failure.errno === 'ENOENT') this.#staleChains.delete(chain)
          else failures.push(failure)
        }
      }
      if (failures.length > 0) throw failures[0]
    }
  }

  #deleteChains(chains: readonly string[], stats: WriteLog): void {
    const transaction = new Transaction()
    for (const chain of chains) transaction.deleteChain(chain)
    applyCounted(this.#options.driver, transaction.ops(), stats)
    for (const chain of chains) this.#staleChains.delete(chain)
  }
}

/** Says when planning has taken some ten milliseconds, so that other work should have a turn. */
class Pauses {
  #planned = 0

  isDueAfter(view: ServicePortView | undefined): boolean {
    this.#planned += view === undefined ? 0 : view.frontends.length + placesAtMost(view.backends)
    if (this.#planned < PLANNED_IN_A_STEP) return false
    this.#planned = 0
    return true
  }
}

const PLANNED_IN_A_STEP = 5000

/** The kernel is short of memory for now. Replacing the table would need more, and lose the affinity entries. */
function isShortage(error: unknown): boolean {
  return error instanceof KernelError && SHORTAGES.includes(error.errno)
}

const SHORTAGES: readonly string[] = ['ENOMEM', 'ENOBUFS', 'EAGAIN', 'ETIMEDOUT']

/** The dynamic maps of a fragment that allow fewer backends than before. */
function shrunk(before: Fragment | undefined, after: Fragment | undefined): DynamicMap[] {
  if (before === undefined || after === undefined || before.dynamicMaps.length === 0) return []
  return after.dynamicMaps.filter(({ set, allowedData }) => {
    const previous = before.dynamicMaps.find((each) => each.set.name === set.name)
    const allowed = new Set(allowedData)
    return previous?.allowedData.some((data) => !allowed.has(data)) === true
  })
}

/** Rewrites the chains of shared rules without those that no service uses, when they have become many. */
function sweepRules(state: TableState): readonly Op[] {
  if (state.unusedRules < UNUSED_RULES) return []
  const unused = state.dropUnusedRules()
  const transaction = new Transaction()
  for (const chain of new Set(unused.map((shared) => shared.chain))) {
    const used = state.rulesInUse().filter((shared) => shared.chain === chain)
    transaction.replaceRules(chain, [...used.map(({ rule }) => rule), ...state.ownRules(chain)])
  }
  for (const { set } of unused) transaction.deleteSet(set.name)
  return transaction.ops()
}
