import { expect, test } from 'vitest'
import type { SharedRule } from './fragment.ts'
import { Ledger } from './ledger.ts'

const NO_BASE = { comment: '', sets: [], chains: [], elements: [], commonSets: new Set(''), sharedChains: new Set('') }

function shared(name: string): SharedRule {
  const nothing = { data: undefined, timeoutMs: undefined, size: undefined, comment: undefined }
  return {
    set: { name, key: ['ipv4_addr'], interval: false, dynamic: false, ...nothing },
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
