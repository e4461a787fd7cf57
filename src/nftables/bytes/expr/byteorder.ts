// Turns host byte order into network byte order, or back. net/netfilter/nft_byteorder.c

import { attr, be32, named, nest } from '../../../netlink/attributes.ts'
import {
  NFT_BYTEORDER_HTON,
  NFT_BYTEORDER_NTOH,
  NFTA_BYTEORDER_DREG,
  NFTA_BYTEORDER_LEN,
  NFTA_BYTEORDER_OP,
  NFTA_BYTEORDER_SIZE,
  NFTA_BYTEORDER_SREG,
} from '../uapi.ts'
import { register } from '../registers.ts'
import { expression, type ExpressionCodec } from './expression.ts'

export const byteorder: ExpressionCodec<'byteorder'> = expression(
  'byteorder',
  'byteorder',
  nest({
    sreg: attr(NFTA_BYTEORDER_SREG, register),
    dreg: attr(NFTA_BYTEORDER_DREG, register),
    op: attr(NFTA_BYTEORDER_OP, named(be32, { ntoh: NFT_BYTEORDER_NTOH, hton: NFT_BYTEORDER_HTON })),
    length: attr(NFTA_BYTEORDER_LEN, be32),
    size: attr(NFTA_BYTEORDER_SIZE, be32),
  }),
)
