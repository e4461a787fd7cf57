// What is to be changed in the tables.

import type { RuleText, TableName } from './types.ts'

export type Op = WriteChain | DeleteChain | ChangeRule

/** Makes the chain, or empties the one that is there, and appends the rules. */
export interface WriteChain {
  readonly op: 'writeChain'
  readonly table: TableName
  readonly chain: string
  readonly rules: readonly RuleText[]
  /** For which service port they are there; one for all of them, or one for each. Undefined: for all service ports. */
  readonly owner: string | undefined | readonly (string | undefined)[]
  readonly stage: Stage
}

/** When a chain is written: what services jump to, then the services, then what jumps to them. */
export type Stage = 'helper' | 'service' | 'entry'

/** Empties and deletes a chain to which nothing jumps any more. */
export interface DeleteChain {
  readonly op: 'deleteChain'
  readonly table: TableName
  readonly chain: string
}

export interface ChangeRule {
  /** Before all others, after all others, or away. */
  readonly op: 'insertRule' | 'appendRule' | 'deleteRule'
  readonly table: TableName
  readonly chain: string
  readonly rule: RuleText
  readonly owner: string | undefined
}

/** Writes a chain that one service port owns. */
export function writeServiceChain(owner: string, chain: string, rules: readonly RuleText[]): WriteChain {
  return { op: 'writeChain', table: 'nat', chain, stage: 'service', rules, owner }
}
