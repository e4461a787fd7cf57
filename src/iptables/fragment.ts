// What one service port owns of the tables. The tables are a base plus the fragments of all service ports.

import type { Stage } from './ops.ts'
import type { RuleText, TableName } from './types.ts'

export interface Fragment {
  /** Whose it is, to name it when the kernel refuses it. */
  readonly owner: string
  /** Chains of the nat table that are this fragment's alone. They jump to each other and to chains of the base. */
  readonly chains: readonly OwnChain[]
  /** Rules in chains of the base. Among those of one fragment and chain, the order matters. */
  readonly rules: readonly PlacedRule[]
}

export interface OwnChain {
  readonly name: string
  readonly rules: readonly RuleText[]
}

export interface PlacedRule {
  readonly table: TableName
  readonly chain: string
  readonly rule: RuleText
}

/** A chain that exists whatever the services are. Rules of fragments stand between its first and its last ones. */
export interface BaseChain {
  readonly table: TableName
  readonly name: string
  readonly stage: Exclude<Stage, 'service'>
  readonly first: readonly RuleText[]
  readonly last: readonly RuleText[]
}

/** The part of the tables that does not depend on services. */
export interface Base {
  readonly chains: readonly BaseChain[]
  /** Rules in chains that are not ours, each put before all others when it is missing: the last of them comes first. */
  readonly jumps: readonly PlacedRule[]
  /** Chains that we share with other programs: made when missing, never emptied or deleted. */
  readonly sharedChains: readonly { readonly table: TableName; readonly name: string }[]
  /** Rules in shared chains, appended when they are missing. */
  readonly sharedRules: readonly PlacedRule[]
  /** Whether a chain of the nat table is one that a fragment of some version may have. */
  isServiceChain(name: string): boolean
}
