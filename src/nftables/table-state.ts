// What several fragments of a table share, and how many of them do.

import { elementKey, type Element, type NftSet, type Rule } from './types.ts'
import type { Fragment, SharedRule, TableBase } from './fragment.ts'

export class TableState {
  readonly #base: TableBase
  /** Users of each element, by set name and element key. */
  readonly #elements = new Map<string, Map<string, number>>()
  /** Users of each shared rule, by the name of its set. Stays at 0 for rules that are in the table but not needed. */
  readonly #rules = new Map<string, { readonly shared: SharedRule; users: number }>()

  constructor(base: TableBase) {
    this.#base = base
  }

  /** The rules that a chain has whatever services there are. */
  ownRules(chain: string): readonly Rule[] {
    return this.#base.chains.find(({ name }) => name === chain)?.rules ?? []
  }

  isCommon(set: NftSet): boolean {
    return this.#base.commonSets.has(set.name)
  }

  users(set: NftSet, element: Element): number {
    return this.#elements.get(set.name)?.get(elementKey(element)) ?? 0
  }

  /** Adds to the number of users of an element of a common set; returns the new number. */
  count(set: NftSet, element: Element, delta: 1 | -1): number {
    let users = this.#elements.get(set.name)
    if (users === undefined) this.#elements.set(set.name, (users = new Map()))
    const key = elementKey(element)
    const now = (users.get(key) ?? 0) + delta
    if (now > 0) users.set(key, now)
    else users.delete(key)
    return now
  }

  /** Notes one more user of the rule; true when the rule has to be put into the table. */
  useRule(shared: SharedRule): boolean {
    const entry = this.#rules.get(shared.set.name)
    if (entry !== undefined) {
      entry.users++
      return false
    }
    this.#rules.set(shared.set.name, { shared, users: 1 })
    return true
  }

  releaseRule(shared: SharedRule): void {
    const entry = this.#rules.get(shared.set.name)
    if (entry !== undefined) entry.users--
  }

  /** The shared rules that some fragment uses, those of most fragments first: a packet looks at one after the other. */
  rulesInUse(): SharedRule[] {
    const inUse = [...this.#rules.values()].filter(({ users }) => users > 0)
    return inUse.sort((a, b) => b.users - a.users).map(({ shared }) => shared)
  }

  /** How many shared rules are in the table that no fragment uses. */
  get unusedRules(): number {
    let unused = 0
    for (const { users } of this.#rules.values()) if (users === 0) unused++
    return unused
  }

  /** Forgets the unused ones and returns them. */
  dropUnusedRules(): SharedRule[] {
    const dropped: SharedRule[] = []
    for (const [name, { shared, users }] of this.#rules) {
      if (users > 0) continue
      dropped.push(shared)
      this.#rules.delete(name)
    }
    return dropped
  }

  /** Notes everything that a fragment shares, as when the fragment is added to an empty table. */
  addAll(fragment: Fragment): void {
    for (const shared of fragment.sharedRules) this.useRule(shared)
    for (const { set, elements } of fragment.elements) {
      if (this.isCommon(set)) for (const element of elements) this.count(set, element, 1)
    }
  }
}
