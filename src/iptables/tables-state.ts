// What fragments have put into the chains of the base, and how many rules there are.

import type { Base, BaseChain, Fragment, PlacedRule } from './fragment.ts'
import type { WriteChain } from './ops.ts'
import type { RuleText, TableName } from './types.ts'

export class TablesState {
  readonly base: Base
  /** The rules of fragments by chain of the base, with their owners. */
  readonly #placed = new Map<string, Map<RuleText, string>>()
  readonly #chains: ReadonlyMap<string, BaseChain>
  readonly #counts = new Map<TableName, number>()

  constructor(base: Base) {
    this.base = base
    this.#chains = new Map(base.chains.map((chain) => [chainKey(chain.table, chain.name), chain]))
    for (const { table, first, last } of base.chains) this.#count(table, first.length + last.length)
    for (const { table } of base.sharedRules) this.#count(table, 1)
  }

  addChains(fragment: Fragment): void {
    for (const { rules } of fragment.chains) this.#count('nat', rules.length)
  }

  removeChains(fragment: Fragment): void {
    for (const { rules } of fragment.chains) this.#count('nat', -rules.length)
  }

  addRule({ table, chain, rule }: PlacedRule, owner: string): void {
    const key = chainKey(table, chain)
    let placed = this.#placed.get(key)
    if (placed === undefined) this.#placed.set(key, (placed = new Map()))
    placed.set(rule, owner)
    this.#count(table, 1)
  }

  removeRule({ table, chain, rule }: PlacedRule): void {
    if (this.#placed.get(chainKey(table, chain))?.delete(rule) === true) this.#count(table, -1)
  }

  /** How many rules fragments have in a chain. */
  placedIn(table: TableName, chain: string): number {
    return this.#placed.get(chainKey(table, chain))?.size ?? 0
  }

  /** The operation that gives the chain of the base everything that it shall hold. */
  writeChain(table: TableName, chain: string): WriteChain {
    const key = chainKey(table, chain)
    const { first, last, stage } = this.#chains.get(key)!
    const placed = this.#placed.get(key) ?? NONE
    const rules = [...first, ...placed.keys(), ...last]
    const owner = [...first.map(noOwner), ...placed.values(), ...last.map(noOwner)]
    return { op: 'writeChain', table, chain, stage, rules, owner }
  }

  /** How many rules of ours a table has. */
  ruleCount(table: TableName): number {
    return this.#counts.get(table) ?? 0
  }

  #count(table: TableName, delta: number): void {
    this.#counts.set(table, this.ruleCount(table) + delta)
  }
}

const NONE: ReadonlyMap<RuleText, string> = new Map()

function noOwner(): undefined {
  return undefined
}

function chainKey(table: TableName, chain: string): string {
  return `${table} ${chain}`
}
