// Loads a constant, or ends the rule with a verdict. net/netfilter/nft_immediate.c

import { attr, be32, constant, mapped, nest } from '../../../netlink/attributes.ts'
import { NFT_REG_VERDICT, NFTA_IMMEDIATE_DATA, NFTA_IMMEDIATE_DREG } from '../uapi.ts'
import { dataValue, dataVerdict, type Verdict } from '../data.ts'
import { register } from '../registers.ts'
import { expression, type ExpressionCodec } from './expression.ts'

export const immediate: ExpressionCodec<'immediate'> = expression(
  'immediate',
  'immediate',
  nest({ dreg: attr(NFTA_IMMEDIATE_DREG, register), value: attr(NFTA_IMMEDIATE_DATA, dataValue) }),
)

const attributes = nest({
  dreg: attr(NFTA_IMMEDIATE_DREG, constant(be32, NFT_REG_VERDICT)),
  verdict: attr(NFTA_IMMEDIATE_DATA, dataVerdict),
})

export const verdict: ExpressionCodec<'verdict'> = expression(
  'verdict',
  'immediate',
  mapped(
    attributes,
    (value: Verdict) => ({ dreg: NFT_REG_VERDICT, verdict: value }),
    ({ verdict: value }) => value,
  ),
)
