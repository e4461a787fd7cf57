import { asBytes } from '../lib/ip.ts'
import { expect, it } from 'vitest'
import { host32 } from '../lib/endian.ts'
import { describeExpressions } from './describe-rule.ts'
import { portsAre, traced } from './language.ts'
import type { Expression } from './types.ts'

/** As the kernel tells it: the name is the first attribute. */
const extension = (name: 'match' | 'target', of: string): Expression => ({
  kind: 'unknown',
  name,
  attributes: asBytes(`\x0c\0\x01\0${of}\0\0\0\x08\0\x02\0\0\0\0\x01`),
})

it.each<[string, readonly Expression[]]>([
  ['xt match "comment"', [extension('match', 'comment')]],
  ['xt target "REJECT"', [extension('target', 'REJECT')]],
  ['(quota)', [{ kind: 'unknown', name: 'quota', attributes: asBytes('') }]],
  ['(match)', [{ kind: 'unknown', name: 'match', attributes: asBytes('\x01') }]],
  ['th sport . th dport 45000 . 80', portsAre(45_000, 80).expressions],
  ['meta nftrace set 1', traced.expressions],
  [
    'meta mark set 0x00004000',
    [
      { kind: 'immediate', dreg: 0, value: host32(0x4000) },
      { kind: 'metaSet', key: 'mark', sreg: 0 },
    ],
  ],
])('says %s', (words, expressions) => {
  expect(describeExpressions(expressions)).toBe(words)
})
