// Hands a copy of the packet to a program. net/netfilter/nft_log.c

import { attr, be16, be32, forbidden, mapped, nest, opt } from '../../../netlink/attributes.ts'
import { NFTA_LOG_GROUP, NFTA_LOG_LEVEL, NFTA_LOG_PREFIX, NFTA_LOG_QTHRESHOLD, NFTA_LOG_SNAPLEN } from '../uapi.ts'
import { expression, type ExpressionCodec, type ExpressionOf } from './expression.ts'

const attributes = nest({
  group: attr(NFTA_LOG_GROUP, be16),
  snaplen: opt(NFTA_LOG_SNAPLEN, be32),
  qthreshold: opt(NFTA_LOG_QTHRESHOLD, be16),
  prefix: forbidden(NFTA_LOG_PREFIX),
  level: forbidden(NFTA_LOG_LEVEL),
})

export const log: ExpressionCodec<'log'> = expression(
  'log',
  'log',
  mapped(
    attributes,
    ({ group, snaplen }: Omit<ExpressionOf<'log'>, 'kind'>) => ({ group, snaplen }),
    // A threshold makes the kernel wait for more packets, which we never ask for.
    ({ group, snaplen, qthreshold }) => ((qthreshold ?? 0) === 0 ? { group, snaplen: snaplen ?? 0 } : undefined),
  ),
)
