import { expect, test } from 'vitest'
import type { SharedRule } from './fragment.ts'
import { Ledger } from './ledger.ts'
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
  const ledger = new Ledger(NO_BASE)
  for (const name of ['ten', 'one', 'two', 'one', 'gone', 'one', 'two']) ledger.useRule(shared(name))
  ledger.releaseRule(shared('gone'))
  expect(ledger.rulesInUse().map(({ set }) => set.name)).toEqual(['one', 'two', 'ten'])
})
