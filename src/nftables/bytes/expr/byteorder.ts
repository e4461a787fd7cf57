// Turns host byte order into network byte order, or back. net/netfilter/nft_byteorder.c

import { attr, be32, named, nest } from '../../../netlink/attributes.ts'
import * as uapi from '../uapi.ts'
import { register } from '../registers.ts'
import { expression, type ExpressionCodec } from './expression.ts'

export const byteorder: ExpressionCodec<'byteorder'> = expression(
  'byteorder',
  'byteorder',
  nest({
    sreg: attr(uapi.NFTA_BYTEORDER_SREG, register),
    dreg: attr(uapi.NFTA_BYTEORDER_DREG, register),
    op: attr(uapi.NFTA_BYTEORDER_OP, named(be32, { ntoh: uapi.NFT_BYTEORDER_NTOH, hton: uapi.NFT_BYTEORDER_HTON })),
    length: attr(uapi.NFTA_BYTEORDER_LEN, be32),
    size: attr(uapi.NFTA_BYTEORDER_SIZE, be32),
  }),
)
