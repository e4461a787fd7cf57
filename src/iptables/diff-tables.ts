// From what iptables-save printed to what there shall be.

import type { BaseChain, Fragment, PlacedRule } from './fragment.ts'
import type { TablesState } from './tables-state.ts'
import { type Op, writeServiceChain } from './ops.ts'
import { commentOf, orderless, sameRule, sameRules, targetOf } from './same.ts'
import type { Chains, RuleText, TableName, Tables } from './types.ts'

/**
 * The operations that lead to the base and the fragments, in an order in which chains come after those to which they jump.
 * The state, which is new, notes them. Fragments are taken one by one, so that the first operations can be carried out
 * while the last fragments are being planned.
 */
export function* diffTables(saved: Tables, fragments: Iterable<Fragment>, state: TablesState): Generator<Op> {
  const { base } = state
  const nat = chainsOf(saved, 'nat')
  const wanted = new Set<string>()
  for (const chain of base.chains) if (chain.stage === 'helper') yield* diffBaseChain(saved, chain, state)
  for (const fragment of fragments) {
    state.addChains(fragment)
    for (const placed of fragment.rules) state.addRule(placed, fragment.owner)
    for (const { name, rules } of fragment.chains) {
      wanted.add(name)
      const present = nat.get(name)
      if (present !== undefined && sameRules(present, rules)) continue
      yield writeServiceChain(fragment.owner, name, rules)
    }
  }
  for (const chain of base.chains) if (chain.stage === 'entry') yield* diffBaseChain(saved, chain, state)
  for (const { table, name } of base.sharedChains) {
    if (chainsOf(saved, table).has(name)) continue
    yield { op: 'writeChain', table, chain: name, stage: 'helper', rules: [], owner: undefined }
  }
  for (const placed of base.sharedRules) yield* diffSharedRule(saved, placed)
  for (const jump of base.jumps) yield* diffJump(saved, jump)
  for (const chain of nat.keys()) {
    if (base.isServiceChain(chain) && !wanted.has(chain)) yield { op: 'deleteChain', table: 'nat', chain }
  }
}

/** Those of the fragments of which everything is there. */
export function presentFragments(saved: Tables, fragments: readonly Fragment[]): Fragment[] {
  const nat = chainsOf(saved, 'nat')
  const placed = new Map<string, Set<string>>()
  for (const [table, chains] of saved) {
    for (const [chain, rules] of chains) placed.set(`${table} ${chain}`, new Set(rules.map(orderless)))
  }
  return fragments.filter(
    ({ chains, rules }) =>
      chains.every(({ name, rules: wanted }) => sameRules(nat.get(name) ?? [], wanted)) &&
      rules.every(({ table, chain, rule }) => placed.get(`${table} ${chain}`)?.has(orderless(rule)) === true),
  )
}

function diffBaseChain(saved: Tables, { table, name, first, last }: BaseChain, state: TablesState): Op[] {
  const present = chainsOf(saved, table).get(name)
  const write = state.writeChain(table, name)
  const { rules } = write
  const middle = rules.slice(first.length, rules.length - last.length)
  const same =
    present?.length === rules.length &&
    sameRules(present.slice(0, first.length), first) &&
    sameRules(present.slice(present.length - last.length), last) &&
    sameSets(present.slice(first.length, present.length - last.length), middle)
  return same ? [] : [write]
}

/** The rules of services may stand in any order: they are about different destinations. */
function sameSets(present: readonly RuleText[], wanted: readonly RuleText[]): boolean {
  const exactly = new Set(wanted)
  const others = present.filter((rule) => !exactly.has(rule))
  if (others.length === 0) return true
  const loosely = new Set(wanted.map(orderless))
  return others.every((rule) => loosely.has(orderless(rule)))
}

/** A rule that another version printed or wrote in other words is replaced, so that there are never two. */
function diffJump(saved: Tables, { table, chain, rule }: PlacedRule): Op[] {
  const target = targetOf(rule)
  const present = (chainsOf(saved, table).get(chain) ?? []).filter((each) => targetOf(each) === target)
  if (present.some((each) => sameRule(each, rule))) return []
  return [
    ...present.map((each): Op => ({ op: 'deleteRule', table, chain, rule: each, owner: undefined })),
    { op: 'insertRule', table, chain, rule, owner: undefined },
  ]
}

/** The chain is not ours alone: a rule with the same comment is taken for the same rule. */
function diffSharedRule(saved: Tables, { table, chain, rule }: PlacedRule): Op[] {
  const present = chainsOf(saved, table).get(chain) ?? []
  const found = present.some((each) => commentOf(each) === commentOf(rule))
  return found ? [] : [{ op: 'appendRule', table, chain, rule, owner: undefined }]
}

const NONE: Chains = new Map()

function chainsOf(saved: Tables, table: TableName): Chains {
  return saved.get(table) ?? NONE
}
