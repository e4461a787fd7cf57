// Programs a table: plans fragments, sends differences, and keeps account of what is in the kernel.

import type { Clock } from '../../lib/clock.ts'
import { KernelError } from '../../lib/errors.ts'
import type { FrontendAddress, NodeView, ServicePortChange, ServicePortView } from '../../model/types.ts'
import type { TableDriver } from '../../nftables/table-driver.ts'
import { Places } from './plan/places.ts'
import type { TablePlanner } from './plan/table-planner.ts'
import { diffFragments, type FragmentChange } from '../../nftables/diff-fragments.ts'
import { diffTable, replaceTable } from '../../nftables/diff-table.ts'
import { formatOps } from '../../nftables/format-ops.ts'
import type { Fragment, Learned } from '../../nftables/fragment.ts'
import { nftFamily } from '../../nftables/language.ts'
import { Ledger } from '../../nftables/ledger.ts'
import { Transaction } from '../../nftables/transaction.ts'
import type { Op } from '../../nftables/types.ts'
import type { Programmer, SyncStats } from '../programmer.ts'
import { SyncCount } from './sync-count.ts'

export interface TableProgrammerOptions {
  readonly planner: TablePlanner
  readonly driver: TableDriver
  readonly clock: Clock
  readonly counts?: FailureCounts
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
/** Another program that uses our table may have left it in a state that no difference leads out of: then it is made anew. */
const REFUSALS_TO_REPLACE = 2

export class TableProgrammer implements Programmer {
  readonly #options: TableProgrammerOptions
  #ledger: Ledger | undefined
  readonly #places = new Places()
  /** Chains that are empty and wait to be deleted, with the time since which they are. */
  readonly #staleChains = new Map<string, number>()
  /** How often in a row the kernel refused to make the table what it should be. */
  #refusals = 0
  #isTold = false

  constructor(options: TableProgrammerOptions) {
    this.#options = options
  }

  sync(node: NodeView, changes: readonly ServicePortChange[]): SyncStats {
    return this.#counted(() => this.#sync(node, changes))
  }

  syncAll(node: NodeView, views: Iterable<ServicePortView>): SyncStats {
    return this.#counted(() => this.#syncAll(node, views))
  }

  tellCommands(isTold: boolean): void {
    this.#isTold = isTold
  }

  close(): void {
    this.#options.driver.close()
  }

  #counted(work: () => SyncStats): SyncStats {
    try {
      return work()
    } catch (error) {
      this.#options.counts?.syncFailed()
      throw error
    }
  }

  #sync(node: NodeView, changes: readonly ServicePortChange[]): SyncStats {
    const ledger = this.#ledger
    if (ledger === undefined) throw new Error('Cannot program changes: the table has not been programmed as a whole')
    const { planner, clock } = this.#options
    const stats = new SyncCount(this.#isTold)
    const tell = (ops: readonly Op[]) => stats.tell(() => formatOps(nftFamily(node.family), planner.table, ops))
    const places = this.#places
    const fragmentChanges = changes.map(({ before, after }): FragmentChange => {
      if (before !== undefined && after !== undefined) places.keep(before, after)
      return {
        before: before && planner.service(node, before, { places, unlike: after }),
        after: after && planner.service(node, after, { places, unlike: before }),
      }
    })
    // Worthless until the kernel has accepted.
    this.#ledger = undefined
    const { ops, staleChains } = diffFragments(fragmentChanges, ledger)
    for (const { after } of fragmentChanges)
      for (const chain of after?.chains ?? []) this.#staleChains.delete(chain.name)
    tell(ops)
    this.#apply(ops, stats)
    const swept = sweepRules(ledger)
    tell(swept)
    this.#apply(swept, stats)
    this.#deleteStaleChains(stats)
    for (const { before, after } of fragmentChanges) this.#forget(shrunk(before, after), stats)
    for (const chain of staleChains) this.#staleChains.set(chain, clock.monotonicNow())
    this.#ledger = ledger
    return stats
  }

  #syncAll(node: NodeView, views: Iterable<ServicePortView>): SyncStats {
    const { planner, driver } = this.#options
    const base = planner.base(node)
    const ledger = new Ledger(base)
    const stats = new SyncCount(this.#isTold)
    const learned: Learned[] = []
    this.#ledger = undefined
    this.#staleChains.clear()
    const actual = driver.read()
    const served = new ServedBefore(actual === undefined ? [] : (planner.servedUdp?.(actual) ?? []))
    const places = this.#places
    const planned = (port: ServicePortView) => {
      const fragment = planner.service(node, port, { places })
      const isAdopted = actual !== undefined && planner.adopt?.(actual, { port, fragment }, places) === true
      return isAdopted ? planner.service(node, port, { places }) : fragment
    }
    const fragments = (function* (): Generator<Fragment> {
      for (const view of views) {
        served.stays(view)
        const fragment = planned(view)
        learned.push(...fragment.learned)
        yield fragment
      }
    })()
    const wanted = { base, fragments }
    const replaces = actual !== undefined && this.#refusals >= REFUSALS_TO_REPLACE
    try {
      const transactions = replaces ? [replaceTable(wanted, ledger)] : diffTable(actual, wanted, ledger)
      const noted = (function* () {
        for (const ops of transactions) {
          stats.note(formatOps(nftFamily(node.family), planner.table, ops))
          yield ops
        }
      })()
      this.#applyEach(noted, stats)
    } catch (error) {
      if (!isShortage(error)) this.#refusals++
      throw error
    }
    this.#refusals = 0
    if (actual !== undefined) this.#forget(learned, stats)
    this.#ledger = ledger
    stats.gone = served.rest()
    return stats
  }

  #apply(ops: readonly Op[], stats: SyncCount): void {
    if (ops.length === 0) return
    stats.count(operationsOf(ops), this.#options.driver.apply(ops).bytes)
  }

  #applyEach(transactions: Iterable<readonly Op[]>, stats: SyncCount): void {
    const { driver } = this.#options
    if (driver.applyEach === undefined) for (const ops of transactions) this.#apply(ops, stats)
    else driver.applyEach(transactions, (ops, bytes) => stats.count(operationsOf(ops), bytes))
  }

  #deleteStaleChains(stats: SyncCount): void {
    const before = this.#options.clock.monotonicNow() - STALE_CHAIN_MS
    const transaction = new Transaction()
    for (const [chain, sinceMs] of this.#staleChains) {
      if (sinceMs > before) continue
      transaction.deleteChain(chain)
      this.#staleChains.delete(chain)
    }
    try {
      this.#apply(transaction.ops(), stats)
    } catch (error) {
      this.#options.counts?.cleanupFailed()
      throw error
    }
  }

  /** Deletes what packets have noted and what is no longer true. */
  #forget(learned: readonly Learned[], stats: SyncCount): void {
    for (const { set, allowedData } of learned) {
      const allowed = new Set(allowedData)
      const elements = this.#options.driver.readElements(set).filter(({ data }) => !allowed.has(data ?? ''))
      if (elements.length > 0) this.#apply([{ op: 'deleteElements', set, elements }], stats)
    }
  }
}

/** The kernel lacks memory for now. A new table would need more of it, and forget what packets have noted. */
function isShortage(error: unknown): boolean {
  return error instanceof KernelError && SHORTAGES.includes(error.errno)
}

const SHORTAGES: readonly string[] = ['ENOMEM', 'ENOBUFS', 'EAGAIN', 'ETIMEDOUT']

/** The dynamic maps of a fragment from whose values something was taken away. */
function shrunk(before: Fragment | undefined, after: Fragment | undefined): Learned[] {
  if (before === undefined || after === undefined || before.learned.length === 0) return []
  return after.learned.filter(({ set, allowedData }) => {
    const previous = before.learned.find((learned) => learned.set.name === set.name)
    const allowed = new Set(allowedData)
    return previous?.allowedData.some((data) => !allowed.has(data)) === true
  })
}

/** Rewrites the chains of shared rules without those that no service uses, when they have become many. */
function sweepRules(ledger: Ledger): readonly Op[] {
  if (ledger.unusedRules < UNUSED_RULES) return []
  const unused = ledger.dropUnusedRules()
  const transaction = new Transaction()
  for (const chain of new Set(unused.map((shared) => shared.chain))) {
    const used = ledger.rulesInUse().filter((shared) => shared.chain === chain)
    transaction.replaceRules(
      chain,
      used.map((shared) => shared.rule),
    )
  }
  for (const { set } of unused) transaction.deleteSet(set.name)
  return transaction.ops()
}

/** The UDP frontends of a table that was read back, without those that are still wanted. */
class ServedBefore {
  readonly #rest: Map<string, FrontendAddress>

  constructor(frontends: Iterable<FrontendAddress>) {
    this.#rest = new Map(Array.from(frontends, (frontend) => [idOf(frontend), frontend]))
  }

  stays({ protocol, frontends }: ServicePortView): void {
    if (protocol === 'UDP' && this.#rest.size > 0) for (const frontend of frontends) this.#rest.delete(idOf(frontend))
  }

  rest(): FrontendAddress[] {
    return [...this.#rest.values()]
  }
}

function idOf({ address, port }: FrontendAddress): string {
  return `${address} ${port}`
}

/** Each element counts. */
function operationsOf(ops: readonly Op[]): number {
  let operations = 0
  for (const op of ops) operations += 'elements' in op ? op.elements.length : 1
  return operations
}
