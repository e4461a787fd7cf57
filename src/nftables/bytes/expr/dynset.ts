// Adds an element to a set from the packet path. net/netfilter/nft_dynset.c

import {
  attr,
  be32,
  be64number,
  bytes,
  cstring,
  forbidden,
  mapped,
  named,
  nest,
  opt,
} from '../../../netlink/attributes.ts'
import * as uapi from '../uapi.ts'
import { register } from '../registers.ts'
import { expression, type ExpressionCodec, type ExpressionOf } from './expression.ts'

const attributes = nest({
  keyReg: attr(uapi.NFTA_DYNSET_SREG_KEY, register),
  dataReg: opt(uapi.NFTA_DYNSET_SREG_DATA, register),
  op: attr(uapi.NFTA_DYNSET_OP, named(be32, { add: uapi.NFT_DYNSET_OP_ADD, update: uapi.NFT_DYNSET_OP_UPDATE })),
  timeoutMs: opt(uapi.NFTA_DYNSET_TIMEOUT, be64number),
  set: attr(uapi.NFTA_DYNSET_SET_NAME, cstring),
  flags: opt(uapi.NFTA_DYNSET_FLAGS, be32),
  expr: opt(
    uapi.NFTA_DYNSET_EXPR,
    nest({
      name: attr(uapi.NFTA_EXPR_NAME, cstring),
      data: opt(uapi.NFTA_EXPR_DATA, bytes),
    }),
  ),
  expressions: forbidden(uapi.NFTA_DYNSET_EXPRESSIONS),
})

type Fields = Omit<ExpressionOf<'dynset'>, 'kind'>

/** NFT_DYNSET_F_EXPR, which the kernel sets when there is an expression. */
const WITH_EXPRESSION = 2

export const dynset: ExpressionCodec<'dynset'> = expression(
  'dynset',
  'dynset',
  mapped(
    attributes,
    ({ counts, ...value }: Fields) => (counts === true ? { ...value, expr: { name: 'counter' } } : value),
    // The kernel always dumps the flags; another one inverts the match, which we never write.
    ({ flags = 0, expr, ...value }): Fields | undefined => {
      if (expr === undefined) return flags === 0 ? value : undefined
      if ((flags & ~WITH_EXPRESSION) !== 0 || expr.name !== 'counter') return undefined
      return { ...value, counts: true }
    },
  ),
)
