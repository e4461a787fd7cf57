// Counts packets and bytes. net/netfilter/nft_counter.c

import { attr, be64, nest } from '../../../netlink/attributes.ts'
import { NFTA_COUNTER_BYTES, NFTA_COUNTER_PACKETS } from '../uapi.ts'
import { expression, type ExpressionCodec } from './expression.ts'

export const counter: ExpressionCodec<'counter'> = expression(
  'counter',
  'counter',
  nest({ bytes: attr(NFTA_COUNTER_BYTES, be64), packets: attr(NFTA_COUNTER_PACKETS, be64) }),
)
