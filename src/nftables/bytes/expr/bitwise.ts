// dreg = (sreg & mask) ^ xor. net/netfilter/nft_bitwise.c

import { attr, be32, constant, mapped, nest, opt } from '../../../netlink/attributes.ts'
import * as uapi from '../uapi.ts'
import { dataValue } from '../data.ts'
import { register } from '../registers.ts'
import { expression, type ExpressionCodec, type ExpressionOf } from './expression.ts'

const attributes = nest({
  sreg: attr(uapi.NFTA_BITWISE_SREG, register),
  dreg: attr(uapi.NFTA_BITWISE_DREG, register),
  op: opt(uapi.NFTA_BITWISE_OP, constant(be32, uapi.NFT_BITWISE_BOOL)),
  length: attr(uapi.NFTA_BITWISE_LEN, be32),
  mask: attr(uapi.NFTA_BITWISE_MASK, dataValue),
  xor: attr(uapi.NFTA_BITWISE_XOR, dataValue),
})

export const bitwise: ExpressionCodec<'bitwise'> = expression(
  'bitwise',
  'bitwise',
  mapped(
    attributes,
    (value: Omit<ExpressionOf<'bitwise'>, 'kind'>) => ({ ...value, op: uapi.NFT_BITWISE_BOOL }),
    ({ sreg, dreg, length, mask, xor }) => ({ sreg, dreg, length, mask, xor }),
  ),
)
