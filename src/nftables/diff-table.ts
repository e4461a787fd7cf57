// From whatever is in the kernel to the whole table that should be there.

import type { Fragment, TableBase } from './fragment.ts'
import type { Ledger } from './ledger.ts'
import { sameHook, sameRules, sameRulesInAnyOrder, sameSet, sameValue } from './same.ts'
import { Transaction } from './transaction.ts'
import { elementKey, type Chain, type Element, type NftSet, type Op, type Rule, type Table } from './types.ts'

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

/**
 * The transactions, to be applied in order, that turn `actual` into what is wanted; the ledger, new and empty, is filled.
 *
 * - No table: it is filled in chunks and goes live with the last transaction, which adds the chains.
 * - A table that is not of our making, or of another version: replaced in one transaction.
 * - Ours: one transaction with the differences, or none.
 */
export function* diffTable(actual: Table | undefined, wanted: Wanted, ledger: Ledger): Generator<readonly Op[]> {
  if (actual === undefined) yield* buildTable(wanted, ledger)
  else if (!isOurs(actual, wanted.base)) yield replaceTable(wanted, ledger)
  else {
    const ops = updateTable(actual, wanted, ledger)
    if (ops.length > 0) yield ops
  }
}

/** Whether every fixed set and chain is there, defined as we define it, and at work. */
function isOurs(actual: Table, base: TableBase): boolean {
  if (actual.isDormant) return false
  const sets = base.sets.every((set) => {
    const found = actual.sets.get(set.name)
    return found !== undefined && sameSet(found, set)
  })
  return (
    sets &&
    base.chains.every((chain) => {
      const found = actual.chains.get(chain.name)
      return found !== undefined && sameHook(found, chain)
    })
  )
}

function* buildTable({ base, fragments }: Wanted, ledger: Ledger): Generator<readonly Op[]> {
  const early = new EarlyRules(base)
  const first = new Transaction()
  for (const set of base.sets) first.addSet(set)
  yield [{ op: 'addTable', comment: base.comment }, ...first.ops()]

  let chunk = new Transaction()
  for (const fragment of fragments) {
    addFragment(chunk, fragment, ledger)
    early.add(chunk, fragment)
    if (chunk.elementCount < CHUNK) continue
    yield chunk.ops()
    chunk = new Transaction()
  }
  addBase(chunk, base, { ledger, early })
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
export function replaceTable({ base, fragments }: Wanted, ledger: Ledger): readonly Op[] {
  const transaction = new Transaction()
  for (const set of base.sets) transaction.addSet(set)
  for (const fragment of fragments) addFragment(transaction, fragment, ledger)
  addBase(transaction, base, { ledger })
  return [{ op: 'deleteTable' }, { op: 'addTable', comment: base.comment }, ...transaction.ops()]
}

function addFragment(transaction: Transaction, fragment: Fragment, ledger: Ledger): void {
  for (const set of fragment.sets) transaction.addSet(set)
  for (const chain of fragment.chains) transaction.addChain(chain)
  // The rule that uses the set comes with the chains.
  for (const shared of fragment.sharedRules) if (ledger.useRule(shared)) transaction.addSet(shared.set)
  for (const { set, elements } of fragment.elements) {
    const isCommon = ledger.isCommon(set)
    for (const element of elements) {
      if (isCommon && ledger.count(set, element, 1) > 1) continue
      transaction.addElement(set, element)
    }
  }
}

function addBase(
  transaction: Transaction,
  base: TableBase,
  { ledger, early }: { ledger: Ledger; early?: EarlyRules },
): void {
  for (const { set, elements } of base.elements) for (const element of elements) transaction.addElement(set, element)
  const sharedRules = ledger.rulesInUse()
  for (const chain of base.chains) {
    const rules = sharedRules.filter((shared) => shared.chain === chain.name).map(({ rule }) => rule)
    if (early?.complete(transaction, chain.name, rules) === true) continue
    transaction.addChain({ ...chain, rules: [...chain.rules, ...rules] })
  }
}

function updateTable(actual: Table, { base, fragments }: Wanted, ledger: Ledger): readonly Op[] {
  const transaction = new Transaction()
  const leftovers = new Leftovers(actual)
  for (const { set, elements } of base.elements) {
    for (const element of elements) leftovers.keepElement(transaction, set, element)
  }
  for (const fragment of fragments) updateFragment(transaction, fragment, { ledger, leftovers })
  const sharedRules = new Map<string, Rule[]>()
  for (const { chain, rule } of ledger.rulesInUse()) {
    const rules = sharedRules.get(chain)
    if (rules === undefined) sharedRules.set(chain, [rule])
    else rules.push(rule)
  }
  for (const chain of base.chains) {
    const shared = base.sharedChains.has(chain.name)
    const rules = shared ? (sharedRules.get(chain.name) ?? []) : chain.rules
    leftovers.keepChain(transaction, { ...chain, rules }, shared ? 'any' : 'exact')
  }
  for (const set of base.sets) leftovers.keepSet(transaction, set)
  leftovers.deleteRest(transaction)
  return transaction.ops()
}

function updateFragment(
  transaction: Transaction,
  fragment: Fragment,
  { ledger, leftovers }: { ledger: Ledger; leftovers: Leftovers },
): void {
  for (const set of fragment.sets) leftovers.keepSet(transaction, set)
  for (const chain of fragment.chains) leftovers.keepChain(transaction, chain, 'exact')
  for (const shared of fragment.sharedRules) {
    if (ledger.useRule(shared)) leftovers.keepSet(transaction, shared.set)
  }
  for (const { set, elements } of fragment.elements) {
    for (const element of elements) {
      if (ledger.isCommon(set) && ledger.count(set, element, 1) > 1) continue
      leftovers.keepElement(transaction, set, element)
    }
  }
}

/** What is in the kernel and was not asked for yet. */
class Leftovers {
  readonly #actual: Table
  readonly #sets: Map<string, NftSet>
  readonly #chains: Map<string, Chain>
  readonly #elements: Map<string, Map<string, Element>>

  constructor(actual: Table) {
    this.#actual = actual
    this.#sets = new Map(actual.sets)
    this.#chains = new Map(actual.chains)
    this.#elements = new Map(Array.from(actual.elements, ([name, elements]) => [name, new Map(elements)]))
  }

  keepSet(transaction: Transaction, set: NftSet): void {
    const found = this.#sets.get(set.name)
    this.#sets.delete(set.name)
    if (found === undefined) transaction.addSet(set)
  }

  keepChain(transaction: Transaction, chain: Chain, order: 'exact' | 'any'): void {
    const found = this.#chains.get(chain.name)
    this.#chains.delete(chain.name)
    if (found === undefined) {
      transaction.addChain(chain)
      return
    }
    const same = order === 'exact' ? sameRules : sameRulesInAnyOrder
    if (!same(found.rules, chain.rules)) transaction.replaceRules(chain.name, chain.rules)
  }

  keepElement(transaction: Transaction, set: NftSet, element: Element): void {
    const key = elementKey(element)
    const elements = this.#elements.get(set.name)
    const found = elements?.get(key)
    elements?.delete(key)
    if (found !== undefined && sameValue(found, element)) return
    if (found !== undefined) transaction.deleteElement(set, found)
    transaction.addElement(set, element)
  }

  deleteRest(transaction: Transaction): void {
    for (const [name, elements] of this.#elements) {
      const set = this.#actual.sets.get(name)
      // Elements of a set that goes are gone with it, but older kernels then still count those that name a chain as its
      // users. Elements of dynamic sets belong to the packets that made them.
      if (set === undefined || set.dynamic || (this.#sets.has(name) && set.data !== 'verdict')) continue
      for (const element of elements.values()) transaction.deleteElement(set, element)
    }
    for (const name of this.#chains.keys()) {
      transaction.replaceRules(name, [])
      transaction.deleteChain(name)
    }
    for (const name of this.#sets.keys()) transaction.deleteSet(name)
  }
}
