import { expect, test } from 'vitest'
import type { SharedRule } from './fragment.ts'
import { TableState } from './table-state.ts'
import { makeSet } from './make-set.ts'

const NO_BASE = { comment: '', sets: [], chains: [], elements: [], commonSets: new Set(''), sharedChains: new Set('') }

function shared(name: string): SharedRule {
  return {
    set: makeSet(name, ['ipv4_addr']),
    chain: 'pick',
    rule: { text: name, comment: undefined, expressions: [] },
  }
}

test('the shared rules of most fragments come first, and those of none not at all', () => {
  const state = new TableState(NO_BASE)
  for (const name of ['ten', 'one', 'two', 'one', 'gone', 'one', 'two']) state.useRule(shared(name))
  state.releaseRule(shared('gone'))
  expect(state.rulesInUse().map(({ set }) => set.name)).toEqual(['one', 'two', 'ten'])
})
