// Loads a property of the connection. net/netfilter/nft_ct.c

import { attr, be32, forbidden, named, nest, opt, u8 } from '../../../netlink/attributes.ts'
import * as uapi from '../uapi.ts'
import { register } from '../registers.ts'
import { expression, type ExpressionCodec } from './expression.ts'

const key = named(be32, {
  state: uapi.NFT_CT_STATE,
  direction: uapi.NFT_CT_DIRECTION,
  status: uapi.NFT_CT_STATUS,
  saddr: uapi.NFT_CT_SRC,
  daddr: uapi.NFT_CT_DST,
  protoSrc: uapi.NFT_CT_PROTO_SRC,
  protoDst: uapi.NFT_CT_PROTO_DST,
  l3proto: uapi.NFT_CT_L3PROTOCOL,
  protocol: uapi.NFT_CT_PROTOCOL,
  srcIp: uapi.NFT_CT_SRC_IP,
  dstIp: uapi.NFT_CT_DST_IP,
  srcIp6: uapi.NFT_CT_SRC_IP6,
  dstIp6: uapi.NFT_CT_DST_IP6,
})

/** enum ip_conntrack_dir in net/netfilter/nf_conntrack_tuple_common.h */
const direction = named(u8, { original: 0, reply: 1 })

export const ct: ExpressionCodec<'ct'> = expression(
  'ct',
  'ct',
  nest({
    key: attr(uapi.NFTA_CT_KEY, key),
    dreg: attr(uapi.NFTA_CT_DREG, register),
    direction: opt(uapi.NFTA_CT_DIRECTION, direction),
    sreg: forbidden(uapi.NFTA_CT_SREG),
  }),
)
