// Asks the routing table about an address. net/netfilter/nft_fib.c

import { attr, be32, named, nest } from '../../../netlink/attributes.ts'
import {
  NFT_FIB_RESULT_ADDRTYPE,
  NFTA_FIB_DREG,
  NFTA_FIB_F_DADDR,
  NFTA_FIB_F_SADDR,
  NFTA_FIB_FLAGS,
  NFTA_FIB_RESULT,
} from '../uapi.ts'
import { register } from '../registers.ts'
import { expression, type ExpressionCodec } from './expression.ts'

export const fib: ExpressionCodec<'fib'> = expression(
  'fib',
  'fib',
  nest({
    dreg: attr(NFTA_FIB_DREG, register),
    result: attr(NFTA_FIB_RESULT, named(be32, { type: NFT_FIB_RESULT_ADDRTYPE })),
    source: attr(NFTA_FIB_FLAGS, named(be32, { saddr: NFTA_FIB_F_SADDR, daddr: NFTA_FIB_F_DADDR })),
  }),
)
