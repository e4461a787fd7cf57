// How rules choose a place of a list, and the sets of the frontends whose lists have so many places.

import type { Family } from '../../lib/ip.ts'
import { HASH_SEED } from '../../lib/maglev.ts'
import { type Balance, isHash } from '../../model/balance.ts'
import * as nft from '../../nftables/language.ts'

/** The set of the frontends that have `count` places to choose from, at random or by a hash. */
export function countSetName(frontends: string, count: number, balance: Balance): string {
  return `${frontends}${isHash(balance) ? `-${balance}` : ''}-${count}`
}

/** Undefined for a name that is not of this kind. */
export function splitCountSetName(name: string): { readonly frontends: string; readonly count: number } | undefined {
  const [, frontends, count] = /^(.*?)(?:-hash-(?:connection|client))?-(\d+)$/.exec(name) ?? []
  return frontends === undefined ? undefined : { frontends, count: Number(count) }
}

export function placeOf(family: Family, count: number, balance: Balance): nft.Operand {
  if (!isHash(balance)) return nft.random(count)
  const client = [nft.sourceAddress(family), ...(balance === 'hash-connection' ? [nft.sourcePort] : [])]
  return nft.hashOf(client, { modulus: count, seed: HASH_SEED })
}
