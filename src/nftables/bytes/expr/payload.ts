// Loads bytes of the packet. net/netfilter/nft_payload.c

import { attr, be32, forbidden, named, nest } from '../../../netlink/attributes.ts'
import {
  NFT_PAYLOAD_NETWORK_HEADER,
  NFT_PAYLOAD_TRANSPORT_HEADER,
  NFTA_PAYLOAD_BASE,
  NFTA_PAYLOAD_DREG,
  NFTA_PAYLOAD_LEN,
  NFTA_PAYLOAD_OFFSET,
  NFTA_PAYLOAD_SREG,
} from '../uapi.ts'
import { register } from '../registers.ts'
import { expression, type ExpressionCodec } from './expression.ts'

const base = named(be32, { network: NFT_PAYLOAD_NETWORK_HEADER, transport: NFT_PAYLOAD_TRANSPORT_HEADER })

export const payload: ExpressionCodec<'payload'> = expression(
  'payload',
  'payload',
  nest({
    dreg: attr(NFTA_PAYLOAD_DREG, register),
    base: attr(NFTA_PAYLOAD_BASE, base),
    offset: attr(NFTA_PAYLOAD_OFFSET, be32),
    length: attr(NFTA_PAYLOAD_LEN, be32),
    sreg: forbidden(NFTA_PAYLOAD_SREG),
  }),
)
