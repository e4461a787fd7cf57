// Adds an element to a set from the packet path. net/netfilter/nft_dynset.c

import { attr, be32, be64number, cstring, forbidden, mapped, named, nest, opt } from '../../../netlink/attributes.ts'
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
  expr: forbidden(NFTA_DYNSET_EXPR),
  expressions: forbidden(NFTA_DYNSET_EXPRESSIONS),
})

export const dynset: ExpressionCodec<'dynset'> = expression(
  'dynset',
  'dynset',
  mapped(
    attributes,
    (value: Omit<ExpressionOf<'dynset'>, 'kind'>) => value,
    // The kernel always dumps the flags; a set one inverts the match or adds expressions, which we never write.
    ({ flags, ...value }) => (flags === undefined || flags === 0 ? value : undefined),
  ),
)
