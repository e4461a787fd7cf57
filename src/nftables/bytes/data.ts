// NFTA_DATA_*: a value or a verdict, as immediates, comparisons and elements carry them.

import type { Bytes } from '../../lib/ip.ts'
import { attr, bytes, type Codec, cstring, mapped, named, nest, opt, sbe32 } from '../../netlink/attributes.ts'
import * as uapi from './uapi.ts'

export type Verdict =
  | { readonly code: 'accept' | 'drop' | 'return' }
  | { readonly code: 'jump' | 'goto'; readonly chain: string }

const code = named(sbe32, {
  drop: uapi.NF_DROP,
  accept: uapi.NF_ACCEPT,
  jump: uapi.NFT_JUMP,
  goto: uapi.NFT_GOTO,
  return: uapi.NFT_RETURN,
})

const verdict: Codec<Verdict> = mapped(
  nest({ code: attr(uapi.NFTA_VERDICT_CODE, code), chain: opt(uapi.NFTA_VERDICT_CHAIN, cstring) }),
  (value: Verdict) => value,
  ({ code: read, chain }) => {
    if (read !== 'jump' && read !== 'goto') return { code: read }
    return chain === undefined ? undefined : { code: read, chain }
  },
)

export const dataValue: Codec<Bytes> = mapped(
  nest({ value: attr(uapi.NFTA_DATA_VALUE, bytes) }),
  (value: Bytes) => ({ value }),
  ({ value }) => value,
)

export const dataVerdict: Codec<Verdict> = mapped(
  nest({ verdict: attr(uapi.NFTA_DATA_VERDICT, verdict) }),
  (value: Verdict) => ({ verdict: value }),
  ({ verdict: value }) => value,
)

/** Either: what a map's element leads to. */
export const data: Codec<{ readonly value?: Bytes; readonly verdict?: Verdict }> = nest({
  value: opt(uapi.NFTA_DATA_VALUE, bytes),
  verdict: opt(uapi.NFTA_DATA_VERDICT, verdict),
})
