// Loads bytes of the packet. net/netfilter/nft_payload.c

import { attr, be32, forbidden, named, nest } from '../../../netlink/attributes.ts'
import * as uapi from '../uapi.ts'
import { register } from '../registers.ts'
import { expression, type ExpressionCodec } from './expression.ts'

const base = named(be32, { network: uapi.NFT_PAYLOAD_NETWORK_HEADER, transport: uapi.NFT_PAYLOAD_TRANSPORT_HEADER })

export const payload: ExpressionCodec<'payload'> = expression(
  'payload',
  'payload',
  nest({
    dreg: attr(uapi.NFTA_PAYLOAD_DREG, register),
    base: attr(uapi.NFTA_PAYLOAD_BASE, base),
    offset: attr(uapi.NFTA_PAYLOAD_OFFSET, be32),
    length: attr(uapi.NFTA_PAYLOAD_LEN, be32),
    sreg: forbidden(uapi.NFTA_PAYLOAD_SREG),
  }),
)
