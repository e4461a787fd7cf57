// Maglev's table (Eisenbud and others, NSDI 2016): which of several a hash leads to. It depends on their names and weights alone, so
// all who know these have the same; and when one comes or goes, most places stay as they are.

import type { Bytes } from './ip.ts'
import { jhash } from './jhash.ts'
import { turnsOf } from './turns.ts'

/** Primes. A place of one that goes passes to another, and few other places change while there are so many for each. */
const SIZES = [8191, 32_749, 131_071] as const
const PLACES_EACH = 256

/** Of the hash that chooses a place: any, but the same on all nodes. */
export const HASH_SEED = 0x6b756265

/** How many places a table of so many has. Between two sizes, everything moves. */
export function maglevSize(members: number): number {
  return SIZES.find((size) => size >= members * PLACES_EACH - 1) ?? SIZES.at(-1)!
}

/** For each place the index of who has it. Names are to be different; weights are whole numbers, and none is 0. */
export function maglevTable(
  names: readonly string[],
  weights: readonly number[],
  size = maglevSize(names.length),
): number[] {
  const table: number[] = Array.from({ length: size }, () => -1)
  if (names.length === 0) return []
  const next = names.map((name) => jhash(name, 1) % size)
  const skip = names.map((name) => 1 + (jhash(name, 2) % (size - 1)))
  const turns = turnsOf(weights)
  for (let filled = 0; ; filled++) {
    if (filled === size) return table
    const who = turns[filled % turns.length]!
    let place = next[who]!
    while (table[place] !== -1) place = (place + skip[who]!) % size
    table[place] = who
    next[who] = place
  }
}

/**
 * The table of hosts with ports, in order of both. Named by addresses alone, so that a hash leads to the same host on all ports of a
 * service. A second port of an address is another name.
 */
export function hostTable(
  hosts: readonly { readonly address: Bytes; readonly port: number }[],
  weights: readonly number[],
): number[] {
  const names = hosts.map(({ address, port }, i) =>
    hosts[i - 1]?.address === address ? address + String.fromCharCode(port >> 8, port & 255) : address,
  )
  return maglevTable(names, weights)
}
