// Looks a key up in a set, or in a map, whose value goes to dreg. net/netfilter/nft_lookup.c

import { attr, be32, cstring, mapped, nest, opt } from '../../../netlink/attributes.ts'
import { NFT_LOOKUP_F_INV, NFTA_LOOKUP_DREG, NFTA_LOOKUP_FLAGS, NFTA_LOOKUP_SET, NFTA_LOOKUP_SREG } from '../uapi.ts'
import { register, registerOrVerdict } from '../registers.ts'
import { expression, type ExpressionCodec, type ExpressionOf } from './expression.ts'

const attributes = nest({
  sreg: attr(NFTA_LOOKUP_SREG, register),
  dreg: opt(NFTA_LOOKUP_DREG, registerOrVerdict),
  set: attr(NFTA_LOOKUP_SET, cstring),
  flags: opt(NFTA_LOOKUP_FLAGS, be32),
})

export const lookup: ExpressionCodec<'lookup'> = expression(
  'lookup',
  'lookup',
  mapped(
    attributes,
    ({ invert, ...value }: Omit<ExpressionOf<'lookup'>, 'kind'>) =>
      invert === true ? { ...value, flags: NFT_LOOKUP_F_INV } : value,
    ({ flags, ...value }) => (flags === NFT_LOOKUP_F_INV ? { ...value, invert: true } : value),
  ),
)
