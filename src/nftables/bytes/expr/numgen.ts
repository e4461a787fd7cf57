// A random number below `modulus`, plus `offset`. net/netfilter/nft_numgen.c

import { attr, be32, named, nest } from '../../../netlink/attributes.ts'
import { NFT_NG_RANDOM, NFTA_NG_DREG, NFTA_NG_MODULUS, NFTA_NG_OFFSET, NFTA_NG_TYPE } from '../uapi.ts'
import { register } from '../registers.ts'
import { expression, type ExpressionCodec } from './expression.ts'

export const numgen: ExpressionCodec<'numgen'> = expression(
  'numgen',
  'numgen',
  nest({
    dreg: attr(NFTA_NG_DREG, register),
    modulus: attr(NFTA_NG_MODULUS, be32),
    type: attr(NFTA_NG_TYPE, named(be32, { random: NFT_NG_RANDOM })),
    offset: attr(NFTA_NG_OFFSET, be32),
  }),
)
