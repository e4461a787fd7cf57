// Collects operations in the order in which the kernel accepts them in one transaction.

import { inParts, PART_SIZES, type PartSizes, push } from './parts.ts'
import type { Chain, Element, NftSet, Op, Rule } from './types.ts'

export class Transaction {
  readonly #addSets: Op[] = []
  readonly #addChains: Op[] = []
  readonly #deleteElements = new Map<NftSet, Element[]>()
  readonly #addElements = new Map<NftSet, Element[]>()
  /** Those that only get another value, before and after. */
  readonly #replaced = new Map<NftSet, Element[]>()
  readonly #replacing = new Map<NftSet, Element[]>()
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

  /** The element, whose owner stays the same, gets another value. */
  replaceElement(set: NftSet, before: Element, after: Element): void {
    push(this.#replaced, set, before)
    push(this.#replacing, set, after)
    this.#elements += 2
  }

  ops(): Op[] {
    return [
      ...this.#addSets,
      ...this.#addChains,
      ...elementOps('deleteElements', this.#deleteElements, this.#replaced),
      ...elementOps('addElements', this.#addElements, this.#replacing),
      ...this.#rules,
      // Elements of verdict maps use chains, so sets go before chains. The rules that used the sets are gone by now.
      ...this.#deleteSets,
      ...this.#deleteChains,
    ]
  }

  /** As one transaction, or where that would keep the kernel for long, as several: see parts.ts. */
  *parts(sizes: PartSizes = PART_SIZES): Generator<readonly Op[]> {
    const objects = this.#addSets.length + this.#rules.length + this.#deleteSets.length
    if (this.#elements <= sizes.whole && objects <= sizes.objects) {
      yield this.ops()
      return
    }
    const flushed = new Set(this.#rules.flatMap((op) => (op.op === 'flushChain' ? [op.name] : [])))
    const isLate = (op: Op) => flushed.has(op.op === 'addRule' ? op.chain : op.op === 'flushChain' ? op.name : '')
    const changes = {
      deleted: this.#deleteElements,
      replaced: this.#replaced,
      replacing: this.#replacing,
      added: this.#addElements,
    }
    // What elements need, before; what needs none of them any more, afterwards.
    const groups = (ops: readonly Op[]) => inGroups(ops, sizes.objects)
    yield* groups(this.#addSets)
    yield* groups(this.#addChains)
    yield* groups(this.#rules.filter((op) => !isLate(op)))
    yield* inParts(changes, sizes)
    yield* groups(this.#rules.filter(isLate))
    yield* groups(this.#deleteSets)
    yield* groups(this.#deleteChains)
  }
}

/** A chain that is flushed gets its rules at once: no packet meets it without them. */
function* inGroups(ops: readonly Op[], most: number): Generator<readonly Op[]> {
  let group: Op[] = []
  let chain: string | undefined
  for (const op of ops) {
    const isRule = op.op === 'addRule'
    if (group.length >= most && !(isRule && op.chain === chain)) {
      yield group
      group = []
    }
    group.push(op)
    chain = isRule ? op.chain : op.op === 'flushChain' ? op.name : undefined
  }
  if (group.length > 0) yield group
}

export interface NewTable {
  readonly comment?: string | undefined
  /** See the operation addTable. */
  readonly isOwned?: true
  readonly sets?: Iterable<NftSet>
  readonly elements?: Iterable<readonly [NftSet, readonly Element[]]>
  /** Base chains last: then the table is complete when it sees its first packet. */
  readonly chains: Iterable<Chain>
}

/** One transaction that makes a table, in the place of the one of its name, if there is one. */
export function makeTable({ comment, isOwned, sets = [], elements = [], chains }: NewTable): Op[] {
  const transaction = new Transaction()
  for (const set of sets) transaction.addSet(set)
  for (const [set, ofSet] of elements) for (const element of ofSet) transaction.addElement(set, element)
  for (const chain of chains) transaction.addChain(chain)
  return [{ op: 'deleteTable' }, { op: 'addTable', comment, ...(isOwned && { isOwned }) }, ...transaction.ops()]
}

type BySet = ReadonlyMap<NftSet, readonly Element[]>

/** One for each set: it is a message to the kernel. */
function elementOps(op: 'addElements' | 'deleteElements', some: BySet, others: BySet): Op[] {
  return Array.from(new Set([...some.keys(), ...others.keys()]), (set) => {
    return { op, set, elements: [...(some.get(set) ?? []), ...(others.get(set) ?? [])] }
  })
}
