import { asBytes } from '../lib/ip.ts'
import { expect, test } from 'vitest'
import { buildTable, type Wanted } from './build-table.ts'
import { EMPTY_FRAGMENT, type Fragment, type SharedRule } from './fragment.ts'
import { TableState } from './table-state.ts'
import { makeSet } from './make-set.ts'
import type { Chain, Op } from './types.ts'

const setNamed = (name: string) => makeSet(name, ['integer'])

const chainNamed = (name: string, hook?: Chain['hook']): Chain => ({ name, comment: undefined, hook, rules: [] })

const sharedRule = (set: string): SharedRule => ({
  set: setNamed(set),
  chain: 'pick',
  rule: {
    text: `meets @${set}`,
    comment: undefined,
    expressions: [{ kind: 'lookup', set: 'values', sreg: 8, dreg: 9 }],
  },
})

/** With so many elements that each is a transaction of its own. */
function fragmentWith(shared: SharedRule, first: number): Fragment {
  const elements = Array.from({ length: 2000 }, (_, i) => ({ key: asBytes(String(first + i)) }))
  return { ...EMPTY_FRAGMENT, sharedRules: [shared], elements: [{ set: setNamed('all'), elements }] }
}

test('a new table has a rule of each chain that uses a map before it has many elements, and base chains last', () => {
  const hook = { type: 'nat', hook: 'output', priority: 0 } as const
  const wanted: Wanted = {
    base: {
      comment: '',
      sets: [setNamed('all')],
      chains: [chainNamed('pick'), chainNamed('services'), chainNamed('output', hook)],
      elements: [],
      commonSets: new Set(),
      sharedChains: new Set(['pick']),
    },
    fragments: [
      fragmentWith(sharedRule('a'), 0),
      fragmentWith(sharedRule('b'), 2000),
      fragmentWith(sharedRule('b'), 4000),
    ],
  }
  const transactions = [...buildTable(wanted, new TableState(wanted.base))]
  const shape = transactions.map((ops) => ops.map(describeOp))
  expect(shape).toEqual([
    ['addTable', 'addSet all'],
    ['addSet a', 'addChain pick', 'addElements 2000', 'addRule meets @a'],
    ['addSet b', 'addElements 2000'],
    ['addElements 2000'],
    ['addChain services', 'addChain output', 'insertRule meets @b'],
  ])
})

function describeOp(op: Op): string {
  switch (op.op) {
    case 'addSet':
      return `addSet ${op.set.name}`
    case 'addChain':
      return `addChain ${op.chain.name}`
    case 'addRule':
      return `${op.place === 'first' ? 'insert' : 'add'}Rule ${op.rule.text}`
    case 'addElements':
      return `addElements ${op.elements.length}`
    default:
      return op.op
  }
}
