// Makes the source an address of this machine. net/netfilter/nft_masq.c

import { be32, forbidden, mapped, nest, opt } from '../../../netlink/attributes.ts'
import { NFTA_MASQ_FLAGS, NFTA_MASQ_REG_PROTO_MAX, NFTA_MASQ_REG_PROTO_MIN } from '../uapi.ts'
import { expression, type ExpressionCodec, type ExpressionOf } from './expression.ts'

const attributes = nest({
  flags: opt(NFTA_MASQ_FLAGS, be32),
  protoMin: forbidden(NFTA_MASQ_REG_PROTO_MIN),
  protoMax: forbidden(NFTA_MASQ_REG_PROTO_MAX),
})

export const masq: ExpressionCodec<'masq'> = expression(
  'masq',
  'masq',
  mapped(
    attributes,
    ({ flags }: Omit<ExpressionOf<'masq'>, 'kind'>) => (flags === 0 ? {} : { flags }),
    ({ flags }) => ({ flags: flags ?? 0 }),
  ),
)
