// From a table of ours in the kernel to the one that should be there: one transaction with the differences.

import type { Bytes } from '../lib/ip.ts'
import type { Fragment, TableBase } from './fragment.ts'
import type { TableState } from './table-state.ts'
import { sameHook, sameRules, sameRulesInAnyOrder, sameSet, sameValue } from './same.ts'
import { Transaction } from './transaction.ts'
import {
  elementKey,
  type Chain,
  type Element,
  type NftSet,
  type Op,
  type Rule,
  type OwnTable,
  type Table,
} from './types.ts'

/** Whether packets see it: not one that was never finished, or that another program has switched off. */
export function isAtWork({ isDormant, chains }: Table): boolean {
  return isDormant !== true && [...chains.values()].some(({ hook }) => hook !== undefined)
}

/** Whether every fixed set and chain is there, defined as we define it: not of another version. */
export function isOurs(actual: Table, base: TableBase): boolean {
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

/** A copy that may be taken apart. */
export function ownTable(table: Table): OwnTable {
  return { ...table, elements: new Map(Array.from(table.elements, ([name, elements]) => [name, new Map(elements)])) }
}

/** Fragments are given one at a time, so that they need not be kept. The state, new and empty, is filled. */
export class TableUpdate {
  readonly #base: TableBase
  readonly #state: TableState
  readonly #leftovers: Leftovers
  readonly #transaction = new Transaction()

  /** Takes the table apart. */
  constructor(actual: OwnTable, base: TableBase, state: TableState) {
    this.#base = base
    this.#state = state
    this.#leftovers = new Leftovers(actual)
    for (const { set, elements } of base.elements) {
      for (const element of elements) this.#leftovers.keepElement(this.#transaction, set, element)
    }
  }

  /** More elements that the kernel has. */
  addFound(set: NftSet, elements: Iterable<Element>): void {
    this.#leftovers.addElements(set, elements)
  }

  /** What the kernel has under a key, if no fragment has asked for it yet. */
  find(set: string, key: Bytes): Element | undefined {
    return this.#leftovers.find(set, key)
  }

  add(fragment: Fragment): void {
    const transaction = this.#transaction
    const leftovers = this.#leftovers
    const state = this.#state
    for (const set of fragment.sets) leftovers.keepSet(transaction, set)
    for (const chain of fragment.chains) leftovers.keepChain(transaction, chain)
    for (const shared of fragment.sharedRules) {
      if (state.useRule(shared)) leftovers.keepSet(transaction, shared.set)
    }
    for (const { set, elements } of fragment.elements) {
      for (const element of elements) {
        if (state.isCommon(set) && state.count(set, element, 1) > 1) continue
        leftovers.keepElement(transaction, set, element)
      }
    }
  }

  /** One transaction, when every fragment has been given, or several where very much differs; empty when nothing does. */
  finish(): Iterable<readonly Op[]> {
    const transaction = this.#transaction
    const leftovers = this.#leftovers
    const base = this.#base
    const sharedRules = new Map<string, Rule[]>()
    for (const { chain, rule } of this.#state.rulesInUse()) {
      const rules = sharedRules.get(chain)
      if (rules === undefined) sharedRules.set(chain, [rule])
      else rules.push(rule)
    }
    for (const chain of base.chains) {
      const shared = sharedRules.get(chain.name) ?? []
      leftovers.keepChain(transaction, { ...chain, rules: [...shared, ...chain.rules] }, shared.length)
    }
    for (const set of base.sets) leftovers.keepSet(transaction, set)
    leftovers.deleteRest(transaction)
    return transaction.parts()
  }
}

/** What is in the kernel and was not asked for yet. */
class Leftovers {
  readonly #actual: OwnTable
  readonly #sets: Map<string, NftSet>
  readonly #chains: Map<string, Chain>

  constructor(actual: OwnTable) {
    this.#actual = actual
    this.#sets = new Map(actual.sets)
    this.#chains = new Map(actual.chains)
  }

  addElements(set: NftSet, elements: Iterable<Element>): void {
    let known = this.#actual.elements.get(set.name)
    if (known === undefined) this.#actual.elements.set(set.name, (known = new Map()))
    for (const element of elements) known.set(elementKey(element), element)
  }

  find(set: string, key: Bytes): Element | undefined {
    return this.#actual.elements.get(set)?.get(key)
  }

  keepSet(transaction: Transaction, set: NftSet): void {
    const found = this.#sets.get(set.name)
    this.#sets.delete(set.name)
    if (found === undefined) transaction.addSet(set)
  }

  /** The first `inAnyOrder` rules may be there in another order. */
  keepChain(transaction: Transaction, chain: Chain, inAnyOrder = 0): void {
    const found = this.#chains.get(chain.name)
    this.#chains.delete(chain.name)
    if (found === undefined) {
      transaction.addChain(chain)
      return
    }
    const { rules } = chain
    const same =
      sameRulesInAnyOrder(found.rules.slice(0, inAnyOrder), rules.slice(0, inAnyOrder)) &&
      sameRules(found.rules.slice(inAnyOrder), rules.slice(inAnyOrder))
    if (!same) transaction.replaceRules(chain.name, rules)
  }

  keepElement(transaction: Transaction, set: NftSet, element: Element): void {
    const key = elementKey(element)
    const elements = this.#actual.elements.get(set.name)
    const found = elements?.get(key)
    elements?.delete(key)
    if (found !== undefined && sameValue(found, element)) return
    if (found !== undefined) transaction.deleteElement(set, found)
    transaction.addElement(set, element)
  }

  deleteRest(transaction: Transaction): void {
    for (const [name, elements] of this.#actual.elements) {
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
