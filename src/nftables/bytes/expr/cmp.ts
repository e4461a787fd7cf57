// Compares a register; the rule ends where it does not hold. net/netfilter/nft_cmp.c

import { attr, be32, named, nest } from '../../../netlink/attributes.ts'
import { NFT_CMP_EQ, NFT_CMP_NEQ, NFTA_CMP_DATA, NFTA_CMP_OP, NFTA_CMP_SREG } from '../uapi.ts'
import { dataValue } from '../data.ts'
import { register } from '../registers.ts'
import { expression, type ExpressionCodec } from './expression.ts'

export const cmp: ExpressionCodec<'cmp'> = expression(
  'cmp',
  'cmp',
  nest({
    sreg: attr(NFTA_CMP_SREG, register),
    op: attr(NFTA_CMP_OP, named(be32, { eq: NFT_CMP_EQ, neq: NFT_CMP_NEQ })),
    value: attr(NFTA_CMP_DATA, dataValue),
  }),
)
