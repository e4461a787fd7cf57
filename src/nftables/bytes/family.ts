// Protocol families: include/uapi/linux/netfilter.h, enum NFPROTO_*.

import type { NftFamily } from '../types.ts'

export const NFPROTO = { ip: 2, ip6: 10 } as const satisfies Record<NftFamily, number>

/** The family with this number; undefined for those that hold no table of ours. */
export function familyOfNumber(number: number): NftFamily | undefined {
  if (number === NFPROTO.ip) return 'ip'
  if (number === NFPROTO.ip6) return 'ip6'
  return undefined
}
