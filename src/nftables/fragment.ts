// What one service port owns of a table. A table is its base plus the fragments of all service ports.

import type { Bytes } from '../lib/ip.ts'
import type { Chain, Element, NftSet, Rule } from './types.ts'

export interface Fragment {
  /** Sets and maps of this fragment alone. */
  readonly sets: readonly NftSet[]
  /** Chains of this fragment alone, with their rules. */
  readonly chains: readonly Chain[]
  /** Sets that fragments share, each with the one rule of a base chain that uses it: there while a fragment needs it. */
  readonly sharedRules: readonly SharedRule[]
  /** Elements, by set. */
  readonly elements: readonly SetElements[]
  /** What packets may have put into this fragment's dynamic maps; anything else there is stale. */
  readonly dynamicMaps: readonly DynamicMap[]
}

export interface DynamicMap {
  readonly set: NftSet
  readonly allowedData: readonly Bytes[]
}

export interface SharedRule {
  readonly set: NftSet
  readonly chain: string
  readonly rule: Rule
  /** Before the rules that the chain has of its own. A chain that has some takes no others. */
  readonly place?: 'first'
}

export interface SetElements {
  readonly set: NftSet
  readonly elements: readonly Element[]
}

export const EMPTY_FRAGMENT: Fragment = { sets: [], chains: [], sharedRules: [], elements: [], dynamicMaps: [] }

/** The part of a table that does not depend on services. */
export interface TableBase {
  readonly comment: string
  readonly sets: readonly NftSet[]
  /** In an order in which they can be created: base chains come last, so that a table is live when it is whole. */
  readonly chains: readonly Chain[]
  readonly elements: readonly SetElements[]
  /** Names of sets in which several fragments may have the same element. */
  readonly commonSets: ReadonlySet<string>
  /** Names of the chains that hold the shared rules, whose order does not matter. What such a chain has of its own comes after them. */
  readonly sharedChains: ReadonlySet<string>
}
