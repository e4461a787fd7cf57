// Elements that count, as the kernel lists them. net/netfilter/nf_tables_api.c, nf_tables_fill_setelem

import type { Bytes } from '../../lib/ip.ts'
import { attr, be64, cstring, type Infer, list, nest, opt } from '../../netlink/attributes.ts'
import type { NftSet } from '../types.ts'
import { dataValue } from './data.ts'
import { paddedLength } from './field-type.ts'
import * as uapi from './uapi.ts'

export interface CountedElement {
  /** As Element's. */
  readonly key: Bytes
  readonly packets: number
  readonly bytes: number
}

const counted = nest({
  key: opt(uapi.NFTA_SET_ELEM_KEY, dataValue),
  expression: opt(
    uapi.NFTA_SET_ELEM_EXPR,
    nest({
      name: attr(uapi.NFTA_EXPR_NAME, cstring),
      data: opt(
        uapi.NFTA_EXPR_DATA,
        nest({
          bytes: opt(uapi.NFTA_COUNTER_BYTES, be64),
          packets: opt(uapi.NFTA_COUNTER_PACKETS, be64),
        }),
      ),
    }),
  ),
})

export const countedListAttributes = nest({
  table: attr(uapi.NFTA_SET_ELEM_LIST_TABLE, cstring),
  set: attr(uapi.NFTA_SET_ELEM_LIST_SET, cstring),
  elements: opt(uapi.NFTA_SET_ELEM_LIST_ELEMENTS, list(uapi.NFTA_LIST_ELEM, counted)),
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
