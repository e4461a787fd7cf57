// Rewrites addresses and ports. net/netfilter/nft_nat.c

import { attr, be32, mapped, named, nest, opt } from '../../../netlink/attributes.ts'
import * as uapi from '../uapi.ts'
import { NFPROTO } from '../family.ts'
import { register } from '../registers.ts'
import { expression, type ExpressionCodec, type ExpressionOf } from './expression.ts'

/** The flags that the kernel sets by itself when it sees the registers; it dumps them, nft never sends them. */
const IMPLIED_FLAGS = uapi.NF_NAT_RANGE_MAP_IPS | uapi.NF_NAT_RANGE_PROTO_SPECIFIED

const attributes = nest({
  type: attr(uapi.NFTA_NAT_TYPE, named(be32, { dnat: uapi.NFT_NAT_DNAT })),
  family: attr(uapi.NFTA_NAT_FAMILY, named(be32, NFPROTO)),
  addrMin: attr(uapi.NFTA_NAT_REG_ADDR_MIN, register),
  addrMax: opt(uapi.NFTA_NAT_REG_ADDR_MAX, register),
  protoMin: opt(uapi.NFTA_NAT_REG_PROTO_MIN, register),
  protoMax: opt(uapi.NFTA_NAT_REG_PROTO_MAX, register),
  flags: opt(uapi.NFTA_NAT_FLAGS, be32),
})

/** A maximum that is the minimum is left out: the kernel dumps both registers even when only the minimum was given. */
export const nat: ExpressionCodec<'nat'> = expression(
  'nat',
  'nat',
  mapped(
    attributes,
    ({ flags, ...value }: Omit<ExpressionOf<'nat'>, 'kind'>) => (flags === 0 ? value : { ...value, flags }),
    ({ addrMax, protoMax, flags, ...value }) => ({
      ...value,
      ...(addrMax === undefined || addrMax === value.addrMin ? {} : { addrMax }),
      ...(protoMax === undefined || protoMax === value.protoMin ? {} : { protoMax }),
      flags: (flags ?? 0) & ~IMPLIED_FLAGS,
    }),
  ),
)
