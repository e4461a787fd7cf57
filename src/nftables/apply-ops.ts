// What the kernel would do with a transaction, on a table as data. Tests hold the planners against it.

import { elementKey, type Chain, type Element, type NftFamily, type NftSet, type Op, type Table } from './types.ts'

interface MutableTable {
  comment: string | undefined
  readonly sets: Map<string, NftSet>
  readonly chains: Map<string, Chain>
  readonly elements: Map<string, Map<string, Element>>
}

/** The table after the operations. Like the kernel, refuses to touch what is not there. */
export function applyOps(
  family: NftFamily,
  name: string,
  before: Table | undefined,
  ops: readonly Op[],
): Table | undefined {
  let table = before === undefined ? undefined : copyOf(before)
  for (const op of ops) table = applyOp(table, op)
  return table === undefined ? undefined : { family, name, ...table }
}

function applyOp(table: MutableTable | undefined, op: Op): MutableTable | undefined {
  if (op.op === 'deleteTable') return undefined
  if (op.op === 'addTable') {
    return table ?? { comment: op.comment, sets: new Map(), chains: new Map(), elements: new Map() }
  }
  if (table === undefined) throw new Error(`Cannot ${op.op}: there is no table`)
  switch (op.op) {
    case 'addSet':
      if (!table.sets.has(op.set.name)) table.sets.set(op.set.name, op.set)
      break
    case 'deleteSet':
      if (usersOfSet(table, op.name) > 0) throw new Error(`Cannot delete set ${op.name}: a rule uses it`)
      find(table.sets, op.name)
      table.sets.delete(op.name)
      table.elements.delete(op.name)
      break
    case 'addChain':
      if (!table.chains.has(op.chain.name)) table.chains.set(op.chain.name, { ...op.chain, rules: [] })
      break
    case 'deleteChain':
      if (find(table.chains, op.name).rules.length > 0) throw new Error(`Cannot delete chain ${op.name}: it has rules`)
      if (jumpsTo(table, op.name)) throw new Error(`Cannot delete chain ${op.name}: something jumps to it`)
      table.chains.delete(op.name)
      break
    case 'flushChain':
      table.chains.set(op.name, { ...find(table.chains, op.name), rules: [] })
      break
    case 'addRule': {
      const chain = find(table.chains, op.chain)
      table.chains.set(op.chain, {
        ...chain,
        rules: op.place === 'first' ? [op.rule, ...chain.rules] : [...chain.rules, op.rule],
      })
      break
    }
    case 'addElements':
      changeElements(table, op, (elements, element) => {
        const present = elements.get(elementKey(element))
        if (present !== undefined && present.data !== element.data)
          throw new Error(`Cannot add to ${op.set.name}: exists`)
        elements.set(elementKey(element), element)
      })
      break
    case 'destroyElements':
      changeElements(table, op, (elements, element) => elements.delete(elementKey(element)))
      break
    case 'deleteElements':
      changeElements(table, op, (elements, element) => {
        if (!elements.delete(elementKey(element))) throw new Error(`Cannot delete from ${op.set.name}: not there`)
      })
      break
  }
  return table
}

function changeElements(
  table: MutableTable,
  op: { readonly set: NftSet; readonly elements: readonly Element[] },
  change: (elements: Map<string, Element>, element: Element) => unknown,
): void {
  find(table.sets, op.set.name)
  let elements = table.elements.get(op.set.name)
  if (elements === undefined) table.elements.set(op.set.name, (elements = new Map()))
  for (const element of op.elements) {
    if (element.verdict !== undefined) find(table.chains, element.verdict.chain)
    change(elements, element)
  }
  if (elements.size === 0) table.elements.delete(op.set.name)
}

function find<T>(map: ReadonlyMap<string, T>, name: string): T {
  const found = map.get(name)
  if (found === undefined) throw new Error(`Cannot find ${name} in the table`)
  return found
}

function usersOfSet(table: MutableTable, name: string): number {
  let users = 0
  for (const { rules } of table.chains.values()) {
    for (const { expressions } of rules) {
      for (const e of expressions) if ((e.kind === 'lookup' || e.kind === 'dynset') && e.set === name) users++
    }
  }
  return users
}

function jumpsTo(table: MutableTable, chain: string): boolean {
  for (const { rules } of table.chains.values()) {
    for (const { expressions } of rules) {
      for (const e of expressions) if (e.kind === 'verdict' && 'chain' in e && e.chain === chain) return true
    }
  }
  for (const elements of table.elements.values()) {
    for (const { verdict } of elements.values()) if (verdict?.chain === chain) return true
  }
  return false
}

function copyOf(table: Table): MutableTable {
  return {
    comment: table.comment,
    sets: new Map(table.sets),
    chains: new Map(table.chains),
    elements: new Map(Array.from(table.elements, ([name, elements]) => [name, new Map(elements)])),
  }
}
