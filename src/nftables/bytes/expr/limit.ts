// Goes on with so many packets per second. net/netfilter/nft_limit.c

import { attr, be32, be64number, constant, mapped, nest, opt } from '../../../netlink/attributes.ts'
import * as uapi from '../uapi.ts'
import { expression, type ExpressionCodec, type ExpressionOf } from './expression.ts'

const attributes = nest({
  rate: attr(uapi.NFTA_LIMIT_RATE, be64number),
  unit: attr(uapi.NFTA_LIMIT_UNIT, constant(be64number, 1)),
  burst: attr(uapi.NFTA_LIMIT_BURST, be32),
  type: opt(uapi.NFTA_LIMIT_TYPE, constant(be32, uapi.NFT_LIMIT_PKTS)),
  flags: opt(uapi.NFTA_LIMIT_FLAGS, be32),
})

export const limit: ExpressionCodec<'limit'> = expression(
  'limit',
  'limit',
  mapped(
    attributes,
    ({ perSecond, burst, over }: Omit<ExpressionOf<'limit'>, 'kind'>) => ({
      rate: perSecond,
      unit: 1,
      burst,
      type: uapi.NFT_LIMIT_PKTS,
      flags: over ? uapi.NFT_LIMIT_F_INV : 0,
    }),
    ({ rate, burst, flags = 0 }) => ({ perSecond: rate, burst, over: (flags & uapi.NFT_LIMIT_F_INV) !== 0 }),
  ),
)
