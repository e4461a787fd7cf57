// Asks the routing table about an address. net/netfilter/nft_fib.c

import { attr, be32, named, nest } from '../../../netlink/attributes.ts'
import * as uapi from '../uapi.ts'
import { register } from '../registers.ts'
import { expression, type ExpressionCodec } from './expression.ts'

export const fib: ExpressionCodec<'fib'> = expression(
  'fib',
  'fib',
  nest({
    dreg: attr(uapi.NFTA_FIB_DREG, register),
    result: attr(uapi.NFTA_FIB_RESULT, named(be32, { type: uapi.NFT_FIB_RESULT_ADDRTYPE })),
    source: attr(uapi.NFTA_FIB_FLAGS, named(be32, { saddr: uapi.NFTA_FIB_F_SADDR, daddr: uapi.NFTA_FIB_F_DADDR })),
  }),
)
