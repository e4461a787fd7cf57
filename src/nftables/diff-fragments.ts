// From the fragments of service ports before and after a change to the operations that make the change.

import type { Steps } from '../lib/steps.ts'
import type { Fragment } from './fragment.ts'
import { EMPTY_FRAGMENT } from './fragment.ts'
import type { TableState } from './table-state.ts'
import type { PartSizes } from './parts.ts'
import { sameRules, sameValue } from './same.ts'
import { Transaction } from './transaction.ts'
import { elementKey, type Element, type NftSet, type Op } from './types.ts'

export interface FragmentChange {
  readonly before: Fragment | undefined
  readonly after: Fragment | undefined
}

export interface FragmentDiff {
  /** One transaction, or several where very much changes; none when nothing does. */
  readonly transactions: Iterable<readonly Op[]>
  /**
   * Chains that are empty and unused now. They can be deleted a while later: kernels before 6.2 count the deleted map
   * elements that named them as users for a short time.
   */
  readonly staleChains: readonly string[]
}

/** The state is brought up to date; when the transaction then fails, it is wrong and has to be built again. */
export function* diffingFragments(
  changes: readonly FragmentChange[],
  state: TableState,
  sizes?: PartSizes,
): Steps<FragmentDiff> {
  const transaction = new Transaction()
  const common = new CommonElements(state)
  const staleChains: string[] = []
  let elements = 0
  for (const change of changes) {
    const before = change.before ?? EMPTY_FRAGMENT
    const after = change.after ?? EMPTY_FRAGMENT
    yield* diffingElements(before, after, { transaction, common, state })
    elements += countElements(before) + countElements(after)
    if (elements >= ELEMENTS_OF_A_STEP) {
      elements = 0
      yield
    }
    diffSharedRules(before, after, { transaction, state })
    diffOwnSets(before, after, transaction)
    staleChains.push(...diffOwnChains(before, after, transaction))
  }
  common.emit(transaction)
  return { transactions: transaction.parts(sizes), staleChains }
}

/** Some ten milliseconds. */
const ELEMENTS_OF_A_STEP = 20_000

function countElements({ elements }: Fragment): number {
  return elements.reduce((sum, list) => sum + list.elements.length, 0)
}

interface Context {
  readonly transaction: Transaction
  readonly common: CommonElements
  readonly state: TableState
}

function* diffingElements(before: Fragment, after: Fragment, { transaction, common, state }: Context): Steps<void> {
  /** Of a set that is on both sides by key, of another as they are. */
  const old = new Map<string, { readonly set: NftSet; readonly elements: Pick<Map<string, Element>, 'values'> }>()
  const byKey = new Map<string, Map<string, Element>>()
  const wanted = new Map(after.elements.map(({ set, elements }) => [set.name, elements]))
  const alike = new Map<string, number>()
  let looked = 0
  const isDue = () => ++looked % ELEMENTS_OF_A_STEP === 0
  for (const { set, elements } of before.elements) {
    const others = wanted.get(set.name)
    if (others === undefined) {
      old.set(set.name, { set, elements })
      continue
    }
    const from = countAlike(elements, others)
    const rest = new Map<string, Element>()
    for (let i = from; i < elements.length; i++) {
      rest.set(elementKey(elements[i]!), elements[i]!)
      if (isDue()) yield
    }
    alike.set(set.name, from)
    old.set(set.name, { set, elements: rest })
    byKey.set(set.name, rest)
  }
  for (const { set, elements } of after.elements) {
    const oldOfSet = byKey.get(set.name)
    for (let i = alike.get(set.name) ?? 0; i < elements.length; i++) {
      if (isDue()) yield
      const element = elements[i]!
      const key = elementKey(element)
      const previous = oldOfSet?.get(key)
      if (previous !== undefined) oldOfSet!.delete(key)
      if (previous !== undefined && sameValue(previous, element)) continue
      if (state.isCommon(set)) {
        common.count(set, element, 1)
      } else {
        if (previous === undefined) transaction.addElement(set, element)
        else transaction.replaceElement(set, previous, element)
      }
    }
  }
  for (const { set, elements } of old.values()) {
    for (const element of elements.values()) {
      if (isDue()) yield
      if (state.isCommon(set)) common.count(set, element, -1)
      else transaction.deleteElement(set, element)
    }
  }
}

/** How many elements two lists begin with that are the same. Lists of thousands differ in one place. */
function countAlike(a: readonly Element[], b: readonly Element[]): number {
  let count = 0
  while (count < a.length && count < b.length && sameElement(a[count]!, b[count]!)) count++
  return count
}

function sameElement(a: Element, b: Element): boolean {
  return a.key === b.key && a.keyEnd === b.keyEnd && sameValue(a, b)
}

function diffSharedRules(
  before: Fragment,
  after: Fragment,
  { transaction, state }: Pick<Context, 'transaction' | 'state'>,
): void {
  for (const shared of after.sharedRules) {
    if (!state.useRule(shared)) continue
    transaction.addSet(shared.set)
    if (shared.place === 'first') transaction.insertRule(shared.chain, shared.rule)
    else transaction.addRule(shared.chain, shared.rule)
  }
  for (const shared of before.sharedRules) state.releaseRule(shared)
}

function diffOwnSets(before: Fragment, after: Fragment, transaction: Transaction): void {
  const old = new Set(before.sets.map((set) => set.name))
  for (const set of after.sets) if (!old.delete(set.name)) transaction.addSet(set)
  for (const name of old) transaction.deleteSet(name)
}

function diffOwnChains(before: Fragment, after: Fragment, transaction: Transaction): string[] {
  const old = new Map(before.chains.map((chain) => [chain.name, chain]))
  for (const chain of after.chains) {
    const previous = old.get(chain.name)
    old.delete(chain.name)
    if (previous === undefined) transaction.addChain(chain)
    else if (!sameRules(previous.rules, chain.rules)) transaction.replaceRules(chain.name, chain.rules)
  }
  for (const name of old.keys()) transaction.replaceRules(name, [])
  return [...old.keys()]
}

/** Elements that several fragments may have: added with the first user, deleted with the last. */
class CommonElements {
  readonly #state: TableState
  readonly #touched = new Map<string, { set: NftSet; element: Element; usersBefore: number }>()

  constructor(state: TableState) {
    this.#state = state
  }

  count(set: NftSet, element: Element, delta: 1 | -1): void {
    const id = set.name + elementKey(element)
    if (!this.#touched.has(id)) {
      this.#touched.set(id, { set, element, usersBefore: this.#state.users(set, element) })
    }
    this.#state.count(set, element, delta)
  }

  emit(transaction: Transaction): void {
    for (const { set, element, usersBefore } of this.#touched.values()) {
      const users = this.#state.users(set, element)
      if (usersBefore === 0 && users > 0) transaction.addElement(set, element)
      if (usersBefore > 0 && users === 0) transaction.deleteElement(set, element)
    }
  }
}
