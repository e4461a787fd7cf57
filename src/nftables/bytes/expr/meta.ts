// Loads or sets what the kernel knows about the packet. net/netfilter/nft_meta.c

import { attr, be32, named, nest } from '../../../netlink/attributes.ts'
import {
  NFT_META_IIFNAME,
  NFT_META_L4PROTO,
  NFT_META_MARK,
  NFT_META_NFPROTO,
  NFT_META_NFTRACE,
  NFTA_META_DREG,
  NFTA_META_KEY,
  NFTA_META_SREG,
} from '../uapi.ts'
import { register } from '../registers.ts'
import { expression, type ExpressionCodec } from './expression.ts'

const loadable = named(be32, {
  l4proto: NFT_META_L4PROTO,
  mark: NFT_META_MARK,
  iifname: NFT_META_IIFNAME,
  nfproto: NFT_META_NFPROTO,
})

export const meta: ExpressionCodec<'meta'> = expression(
  'meta',
  'meta',
  nest({ key: attr(NFTA_META_KEY, loadable), dreg: attr(NFTA_META_DREG, register) }),
)

export const metaSet: ExpressionCodec<'metaSet'> = expression(
  'metaSet',
  'meta',
  nest({
    key: attr(NFTA_META_KEY, named(be32, { mark: NFT_META_MARK, nftrace: NFT_META_NFTRACE })),
    sreg: attr(NFTA_META_SREG, register),
  }),
)
