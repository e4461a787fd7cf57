// Elements that count, as the kernel lists them. net/netfilter/nf_tables_api.c, nf_tables_fill_setelem

import type { Bytes } from '../../lib/ip.ts'
import { attr, be64, cstring, type Infer, list, nest, opt } from '../../netlink/attributes.ts'
import type { NftSet } from '../types.ts'
import { dataValue } from './data.ts'
import { paddedLength } from './field-type.ts'
import {
  NFTA_COUNTER_BYTES,
  NFTA_COUNTER_PACKETS,
  NFTA_EXPR_DATA,
  NFTA_EXPR_NAME,
  NFTA_LIST_ELEM,
  NFTA_SET_ELEM_EXPR,
  NFTA_SET_ELEM_KEY,
  NFTA_SET_ELEM_LIST_ELEMENTS,
  NFTA_SET_ELEM_LIST_SET,
  NFTA_SET_ELEM_LIST_TABLE,
} from './uapi.ts'

export interface CountedElement {
  /** As Element's. */
  readonly key: Bytes
  readonly packets: number
  readonly bytes: number
}

const counted = nest({
  key: opt(NFTA_SET_ELEM_KEY, dataValue),
  expression: opt(
    NFTA_SET_ELEM_EXPR,
    nest({
      name: attr(NFTA_EXPR_NAME, cstring),
      data: opt(
        NFTA_EXPR_DATA,
        nest({
          bytes: opt(NFTA_COUNTER_BYTES, be64),
          packets: opt(NFTA_COUNTER_PACKETS, be64),
        }),
      ),
    }),
  ),
})

export const countedListAttributes = nest({
  table: attr(NFTA_SET_ELEM_LIST_TABLE, cstring),
  set: attr(NFTA_SET_ELEM_LIST_SET, cstring),
  elements: opt(NFTA_SET_ELEM_LIST_ELEMENTS, list(NFTA_LIST_ELEM, counted)),
})

/** Undefined for one that does not count. */
export function countedElement(set: NftSet, { key, expression }: Infer<typeof counted>): CountedElement | undefined {
  if (key === undefined || expression?.name !== 'counter') return undefined
  const { bytes = 0n, packets = 0n } = expression.data ?? {}
  return {
    key: key.padEnd(paddedLength(set.key), '\0'),
    packets: Number(packets),
    bytes: Number(bytes),
  }
}
