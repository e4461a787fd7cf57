// Which chains set bits of the packet mark, in tables of any program.

import { decodeHost32 } from '../lib/endian.ts'
import { ruleAttributes } from './bytes/rule.ts'
import { dumpAll } from './dump-all.ts'
import type { Expression } from './types.ts'

export interface MarkSetter {
  readonly family: string
  readonly table: string
  readonly chain: string
}

/** One for each rule. Rules of iptables-nft set marks in words of their own, and are not among them. */
export function readMarkSetters(bits: number): MarkSetter[] {
  return dumpAll('getRule', ruleAttributes, ({ table, chain, expressions = [] }, family) =>
    setsMark(expressions, bits) ? { family, table, chain } : undefined,
  )
}

/** Whether the rule sets one of these bits, or flips it. What a mark from elsewhere has, as from the connection, is not known. */
export function setsMark(expressions: readonly Expression[], bits: number): boolean {
  return expressions.some((set, i) => {
    if (set.kind !== 'metaSet' || set.key !== 'mark') return false
    const source = expressions.slice(0, i).findLast((each) => 'dreg' in each && each.dreg === set.sreg)
    if (source?.kind === 'immediate') return (decodeHost32(source.value) & bits) !== 0
    return source?.kind === 'bitwise' && (decodeHost32(source.xor) & bits) !== 0
  })
}
