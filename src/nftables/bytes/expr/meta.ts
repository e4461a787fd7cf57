// Loads or sets what the kernel knows about the packet. net/netfilter/nft_meta.c

import { attr, be32, named, nest } from '../../../netlink/attributes.ts'
import * as uapi from '../uapi.ts'
import { register } from '../registers.ts'
import { expression, type ExpressionCodec } from './expression.ts'

const loadable = named(be32, {
  l4proto: uapi.NFT_META_L4PROTO,
  mark: uapi.NFT_META_MARK,
  iifname: uapi.NFT_META_IIFNAME,
  nfproto: uapi.NFT_META_NFPROTO,
})

export const meta: ExpressionCodec<'meta'> = expression(
  'meta',
  'meta',
  nest({ key: attr(uapi.NFTA_META_KEY, loadable), dreg: attr(uapi.NFTA_META_DREG, register) }),
)

export const metaSet: ExpressionCodec<'metaSet'> = expression(
  'metaSet',
  'meta',
  nest({
    key: attr(uapi.NFTA_META_KEY, named(be32, { mark: uapi.NFT_META_MARK, nftrace: uapi.NFT_META_NFTRACE })),
    sreg: attr(uapi.NFTA_META_SREG, register),
  }),
)
