// From the fragments of service ports before and after a change to the operations that make the change.

import type { Fragment, PlacedRule } from './fragment.ts'
import type { TablesState } from './tables-state.ts'
import { type ChangeRule, type Op, writeServiceChain } from './ops.ts'
import type { TableName } from './types.ts'

export interface FragmentChange {
  readonly before: Fragment | undefined
  readonly after: Fragment | undefined
}

/**
 * To delete a rule, iptables compares it with all others of its chain. So many comparisons take longer than writing the
 * chain again.
 */
const COMPARISONS = 100_000

/** The state is brought up to date; when applying the operations then fails, it is wrong and has to be built again. */
export function diffFragments(changes: readonly FragmentChange[], state: TablesState): Op[] {
  const ops: Op[] = []
  const placed = new PlacedChanges(state)
  for (const { before, after } of changes) {
    // One by one: a call with a hundred thousand arguments is more than the stack holds.
    for (const op of diffChains(before, after)) ops.push(op)
    placed.add(before, after)
    if (before !== undefined) state.removeChains(before)
    if (after !== undefined) state.addChains(after)
  }
  return [...ops, ...placed.ops()]
}

function diffChains(before: Fragment | undefined, after: Fragment | undefined): Op[] {
  const ops: Op[] = []
  const old = new Map((before?.chains ?? []).map((chain) => [chain.name, chain]))
  for (const { name, rules } of after?.chains ?? []) {
    const present = old.get(name)
    old.delete(name)
    const same = present?.rules.length === rules.length && present.rules.every((rule, i) => rule === rules[i])
    if (!same) ops.push(writeServiceChain(after!.owner, name, rules))
  }
  for (const chain of old.keys()) ops.push({ op: 'deleteChain', table: 'nat', chain })
  return ops
}

/** Changes of rules in the chains of the base. */
class PlacedChanges {
  readonly #state: TablesState
  readonly #byChain = new Map<string, { table: TableName; chain: string; deleted: ChangeRule[]; added: ChangeRule[] }>()

  constructor(state: TablesState) {
    this.#state = state
  }

  add(before: Fragment | undefined, after: Fragment | undefined): void {
    const old = new Map((before?.rules ?? []).map((placed) => [idOf(placed), placed]))
    const added: PlacedRule[] = []
    for (const placed of after?.rules ?? []) if (!old.delete(idOf(placed))) added.push(placed)
    for (const placed of old.values()) {
      this.#chain(placed).deleted.push({ op: 'deleteRule', owner: before!.owner, ...placed })
      this.#state.removeRule(placed)
    }
    for (const placed of added) this.#state.addRule(placed, after!.owner)
    // Each is put before all others, so the last of them goes first.
    for (const placed of added.reverse()) {
      this.#chain(placed).added.push({ op: 'insertRule', owner: after!.owner, ...placed })
    }
  }

  *ops(): Generator<Op> {
    for (const { table, chain, deleted, added } of this.#byChain.values()) {
      if (deleted.length * this.#state.placedIn(table, chain) > COMPARISONS) {
        yield this.#state.writeChain(table, chain)
      } else {
        yield* deleted
        yield* added
      }
    }
  }

  #chain({ table, chain }: PlacedRule): { deleted: ChangeRule[]; added: ChangeRule[] } {
    const key = `${table} ${chain}`
    let found = this.#byChain.get(key)
    if (found === undefined) this.#byChain.set(key, (found = { table, chain, deleted: [], added: [] }))
    return found
  }
}

function idOf({ table, chain, rule }: PlacedRule): string {
  return `${table} ${chain} ${rule}`
}
