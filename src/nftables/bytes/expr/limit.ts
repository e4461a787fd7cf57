// Goes on with so many packets per second. net/netfilter/nft_limit.c

import { attr, be32, be64number, constant, mapped, nest, opt } from '../../../netlink/attributes.ts'
import {
  NFT_LIMIT_F_INV,
  NFT_LIMIT_PKTS,
  NFTA_LIMIT_BURST,
  NFTA_LIMIT_FLAGS,
  NFTA_LIMIT_RATE,
  NFTA_LIMIT_TYPE,
  NFTA_LIMIT_UNIT,
} from '../uapi.ts'
import { expression, type ExpressionCodec, type ExpressionOf } from './expression.ts'

const attributes = nest({
  rate: attr(NFTA_LIMIT_RATE, be64number),
  unit: attr(NFTA_LIMIT_UNIT, constant(be64number, 1)),
  burst: attr(NFTA_LIMIT_BURST, be32),
  type: opt(NFTA_LIMIT_TYPE, constant(be32, NFT_LIMIT_PKTS)),
  flags: opt(NFTA_LIMIT_FLAGS, be32),
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
      type: NFT_LIMIT_PKTS,
      flags: over ? NFT_LIMIT_F_INV : 0,
    }),
    ({ rate, burst, flags = 0 }) => ({ perSecond: rate, burst, over: (flags & NFT_LIMIT_F_INV) !== 0 }),
  ),
)
