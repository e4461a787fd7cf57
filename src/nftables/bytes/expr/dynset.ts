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
import {
  NFT_DYNSET_OP_ADD,
  NFT_DYNSET_OP_UPDATE,
  NFTA_DYNSET_EXPR,
  NFTA_DYNSET_EXPRESSIONS,
  NFTA_DYNSET_FLAGS,
  NFTA_DYNSET_OP,
  NFTA_DYNSET_SET_NAME,
  NFTA_DYNSET_SREG_DATA,
  NFTA_DYNSET_SREG_KEY,
  NFTA_DYNSET_TIMEOUT,
  NFTA_EXPR_DATA,
  NFTA_EXPR_NAME,
} from '../uapi.ts'
import { register } from '../registers.ts'
import { expression, type ExpressionCodec, type ExpressionOf } from './expression.ts'

const attributes = nest({
  keyReg: attr(NFTA_DYNSET_SREG_KEY, register),
  dataReg: opt(NFTA_DYNSET_SREG_DATA, register),
  op: attr(NFTA_DYNSET_OP, named(be32, { add: NFT_DYNSET_OP_ADD, update: NFT_DYNSET_OP_UPDATE })),
  timeoutMs: opt(NFTA_DYNSET_TIMEOUT, be64number),
  set: attr(NFTA_DYNSET_SET_NAME, cstring),
  flags: opt(NFTA_DYNSET_FLAGS, be32),
  expr: opt(
    NFTA_DYNSET_EXPR,
    nest({
      name: attr(NFTA_EXPR_NAME, cstring),
      data: opt(NFTA_EXPR_DATA, bytes),
    }),
  ),
  expressions: forbidden(NFTA_DYNSET_EXPRESSIONS),
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
