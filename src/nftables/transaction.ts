// Collects operations in the order in which the kernel accepts them in one transaction.

import type { Chain, Element, NftSet, Op, Rule } from './types.ts'

export class Transaction {
  readonly #addSets: Op[] = []
  readonly #addChains: Op[] = []
  readonly #deleteElements = new Map<NftSet, Element[]>()
  readonly #addElements = new Map<NftSet, Element[]>()
  readonly #rules: Op[] = []
  readonly #deleteChains: Op[] = []
  readonly #deleteSets: Op[] = []
  #elements = 0

  /** The number of elements that are added or deleted. */
  get elementCount(): number {
    return this.#elements
  }

  addSet(set: NftSet): void {
    this.#addSets.push({ op: 'addSet', set })
  }

  deleteSet(name: string): void {
    this.#deleteSets.push({ op: 'deleteSet', name })
  }

  /** Creates the chain with its rules. The rules come later in the transaction, when all chains and sets are there. */
  addChain(chain: Chain): void {
    this.#addChains.push({ op: 'addChain', chain })
    for (const rule of chain.rules) this.addRule(chain.name, rule)
  }

  addRule(chain: string, rule: Rule): void {
    this.#rules.push({ op: 'addRule', chain, rule })
  }

  /** In front of the rules that the chain has. */
  insertRule(chain: string, rule: Rule): void {
    this.#rules.push({ op: 'addRule', chain, rule, place: 'first' })
  }

  /** Replaces the rules of a chain that exists. */
  replaceRules(chain: string, rules: readonly Rule[]): void {
    this.#rules.push({ op: 'flushChain', name: chain })
    for (const rule of rules) this.addRule(chain, rule)
  }

  deleteChain(name: string): void {
    this.#deleteChains.push({ op: 'deleteChain', name })
  }

  addElement(set: NftSet, element: Element): void {
    push(this.#addElements, set, element)
    this.#elements++
  }

  deleteElement(set: NftSet, element: Element): void {
    push(this.#deleteElements, set, element)
    this.#elements++
  }

  ops(): Op[] {
    return [
      ...this.#addSets,
      ...this.#addChains,
      ...Array.from(this.#deleteElements, ([set, elements]): Op => ({ op: 'deleteElements', set, elements })),
      ...Array.from(this.#addElements, ([set, elements]): Op => ({ op: 'addElements', set, elements })),
      ...this.#rules,
      // Elements of verdict maps use chains, so sets go before chains. The rules that used the sets are gone by now.
      ...this.#deleteSets,
      ...this.#deleteChains,
    ]
  }
}

function push(map: Map<NftSet, Element[]>, set: NftSet, element: Element): void {
  const list = map.get(set)
  if (list === undefined) map.set(set, [element])
  else list.push(element)
}
