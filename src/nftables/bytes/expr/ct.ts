// Loads a property of the connection. net/netfilter/nft_ct.c

import { attr, be32, forbidden, named, nest, opt, u8 } from '../../../netlink/attributes.ts'
import {
  NFT_CT_DIRECTION,
  NFT_CT_DST,
  NFT_CT_DST_IP,
  NFT_CT_DST_IP6,
  NFT_CT_L3PROTOCOL,
  NFT_CT_PROTO_DST,
  NFT_CT_PROTO_SRC,
  NFT_CT_PROTOCOL,
  NFT_CT_SRC,
  NFT_CT_SRC_IP,
  NFT_CT_SRC_IP6,
  NFT_CT_STATE,
  NFT_CT_STATUS,
  NFTA_CT_DIRECTION,
  NFTA_CT_DREG,
  NFTA_CT_KEY,
  NFTA_CT_SREG,
} from '../uapi.ts'
import { register } from '../registers.ts'
import { expression, type ExpressionCodec } from './expression.ts'

const key = named(be32, {
  state: NFT_CT_STATE,
  direction: NFT_CT_DIRECTION,
  status: NFT_CT_STATUS,
  saddr: NFT_CT_SRC,
  daddr: NFT_CT_DST,
  protoSrc: NFT_CT_PROTO_SRC,
  protoDst: NFT_CT_PROTO_DST,
  l3proto: NFT_CT_L3PROTOCOL,
  protocol: NFT_CT_PROTOCOL,
  srcIp: NFT_CT_SRC_IP,
  dstIp: NFT_CT_DST_IP,
  srcIp6: NFT_CT_SRC_IP6,
  dstIp6: NFT_CT_DST_IP6,
})

/** enum ip_conntrack_dir in net/netfilter/nf_conntrack_tuple_common.h */
const direction = named(u8, { original: 0, reply: 1 })

export const ct: ExpressionCodec<'ct'> = expression(
  'ct',
  'ct',
  nest({
    key: attr(NFTA_CT_KEY, key),
    dreg: attr(NFTA_CT_DREG, register),
    direction: opt(NFTA_CT_DIRECTION, direction),
    sreg: forbidden(NFTA_CT_SREG),
  }),
)
