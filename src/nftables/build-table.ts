// A table from nothing: where there is none, or in the place of one that no difference leads out of.

import type { Fragment, TableBase } from './fragment.ts'
import type { TableState } from './table-state.ts'
import { Transaction } from './transaction.ts'
import type { Op, Rule } from './types.ts'

/**
 * Elements of one transaction while the table is not live yet: enough for the kernel to be fast, and few enough to be gone
 * before V8 takes them for objects that stay. With 20,000 the heap of a large cluster is a third larger after the start.
 */
const CHUNK = 2000

/** What should be in the kernel. Fragments are walked once, one at a time, so that they need not be kept. */
export interface Wanted {
  readonly base: TableBase
  readonly fragments: Iterable<Fragment>
}

/** The transactions, to be applied in order, where there is no table: it is filled in chunks and goes live with the last one. */
export function* buildTable({ base, fragments }: Wanted, state: TableState): Generator<readonly Op[]> {
  const early = new EarlyRules(base)
  const first = new Transaction()
  for (const set of base.sets) first.addSet(set)
  yield [{ op: 'addTable', comment: base.comment }, ...first.ops()]

  let chunk = new Transaction()
  for (const fragment of fragments) {
    addObjects(chunk, fragment, state)
    early.add(chunk, fragment)
    for (const { set, elements } of fragment.elements) {
      const isCommon = state.isCommon(set)
      for (const element of elements) {
        if (isCommon && state.count(set, element, 1) > 1) continue
        chunk.addElement(set, element)
        if (chunk.elementCount < CHUNK) continue
        yield chunk.ops()
        chunk = new Transaction()
      }
    }
  }
  addBase(chunk, base, state, early)
  yield chunk.ops()
}

/**
 * When a rule uses a map, and is the first of its chain that does, the kernel looks at all elements of the map. So one comes while
 * there are few of them, and the others of the chain around it at the end. No packet gets there before the base chains are
 * there, which come last. Verdict maps are left alone: in use, each of their elements would cost more.
 */
class EarlyRules {
  readonly #base: TableBase
  /** By chain. */
  readonly #rules = new Map<string, Rule>()

  constructor(base: TableBase) {
    this.#base = base
  }

  add(transaction: Transaction, { sharedRules }: Fragment): void {
    for (const shared of sharedRules) {
      if (this.#rules.has(shared.chain) || !readsValues(shared.rule)) continue
      const chain = this.#base.chains.find(({ name, hook }) => name === shared.chain && hook === undefined)
      if (chain === undefined) continue
      this.#rules.set(chain.name, shared.rule)
      transaction.addChain(chain)
      transaction.addRule(shared.chain, shared.rule)
    }
  }

  /** The others of the chain, around the one that is there; false when there is none. */
  complete(transaction: Transaction, chain: string, rules: readonly Rule[]): boolean {
    const early = this.#rules.get(chain)
    if (early === undefined) return false
    const at = rules.indexOf(early)
    for (const rule of rules.slice(0, at).reverse()) transaction.insertRule(chain, rule)
    for (const rule of rules.slice(at + 1)) transaction.addRule(chain, rule)
    return true
  }
}

function readsValues({ expressions }: Rule): boolean {
  return expressions.some((expression) => expression.kind === 'lookup' && typeof expression.dreg === 'number')
}

/** The one transaction that puts what is wanted in the place of whatever table there is. */
export function replaceTable(wanted: Wanted, state: TableState): readonly Op[] {
  return [{ op: 'deleteTable' } as const, ...buildTable(wanted, state)].flat()
}

function addObjects(transaction: Transaction, fragment: Fragment, state: TableState): void {
  for (const set of fragment.sets) transaction.addSet(set)
  for (const chain of fragment.chains) transaction.addChain(chain)
  // The rule that uses the set comes with the chains.
  for (const shared of fragment.sharedRules) if (state.useRule(shared)) transaction.addSet(shared.set)
}

function addBase(transaction: Transaction, base: TableBase, state: TableState, early: EarlyRules): void {
  for (const { set, elements } of base.elements) for (const element of elements) transaction.addElement(set, element)
  const sharedRules = state.rulesInUse()
  for (const chain of base.chains) {
    const rules = sharedRules.filter((shared) => shared.chain === chain.name).map(({ rule }) => rule)
    if (early.complete(transaction, chain.name, rules)) continue
    transaction.addChain({ ...chain, rules: [...rules, ...chain.rules] })
  }
}
