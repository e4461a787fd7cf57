// Sends the packet to a port of this machine. net/netfilter/nft_redir.c

import { attr, be32, mapped, nest, opt } from '../../../netlink/attributes.ts'
import { NFTA_REDIR_FLAGS, NFTA_REDIR_REG_PROTO_MAX, NFTA_REDIR_REG_PROTO_MIN } from '../uapi.ts'
import { register } from '../registers.ts'
import { expression, type ExpressionCodec, type ExpressionOf } from './expression.ts'

const attributes = nest({
  protoMin: attr(NFTA_REDIR_REG_PROTO_MIN, register),
  protoMax: opt(NFTA_REDIR_REG_PROTO_MAX, register),
  flags: opt(NFTA_REDIR_FLAGS, be32),
})

export const redir: ExpressionCodec<'redir'> = expression(
  'redir',
  'redir',
  mapped(
    attributes,
    ({ protoMin, flags }: Omit<ExpressionOf<'redir'>, 'kind'>) => (flags === 0 ? { protoMin } : { protoMin, flags }),
    // The kernel dumps a maximum even when only the minimum was given.
    ({ protoMin, protoMax, flags }) =>
      protoMax === undefined || protoMax === protoMin ? { protoMin, flags: flags ?? 0 } : undefined,
  ),
)
