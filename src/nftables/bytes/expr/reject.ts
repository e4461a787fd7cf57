// Answers with an error. net/netfilter/nft_reject.c

import { attr, be32, mapped, nest, opt, u8 } from '../../../netlink/attributes.ts'
import { NFTA_REJECT_ICMP_CODE, NFTA_REJECT_TYPE } from '../uapi.ts'
import { expression, type ExpressionCodec, type ExpressionOf } from './expression.ts'

const attributes = nest({ type: attr(NFTA_REJECT_TYPE, be32), code: opt(NFTA_REJECT_ICMP_CODE, u8) })

export const reject: ExpressionCodec<'reject'> = expression(
  'reject',
  'reject',
  mapped(
    attributes,
    (value: Omit<ExpressionOf<'reject'>, 'kind'>) => value,
    // The kernel dumps no code with a TCP reset, where it means nothing.
    ({ type, code }) => ({ type, code: code ?? 0 }),
  ),
)
