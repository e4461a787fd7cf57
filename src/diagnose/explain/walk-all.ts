// Every way that a packet may take through the kernel: each random choice is tried.

import type { KernelWay, Host, Walkable, Packet } from '../../packet-walk/types.ts'

/** More endpoints than this are not tried one by one. */
export const MOST_WAYS = 2000

export interface Ways {
  /** One for each end, in the order in which they were found. */
  readonly ways: readonly KernelWay[]
  /** Whether there are more than were tried. */
  readonly isPartial: boolean
}

export function walkAll(walkable: Walkable, packet: Packet, around: Omit<Host, 'random'>): Ways {
  const ends = new Map<string, KernelWay>()
  let choices: number[] | undefined = []
  for (let tried = 0; choices !== undefined; tried++) {
    if (tried === MOST_WAYS) return { ways: [...ends.values()], isPartial: true }
    const moduli: number[] = []
    const made = choices
    const random = (modulus: number) => {
      moduli.push(modulus)
      return made[moduli.length - 1] ?? 0
    }
    const way = walkable.walk(packet, { ...around, random })
    const end = [way.verdict, way.destination, way.destinationPort, way.translated, way.masqueraded].join(' ')
    if (!ends.has(end)) ends.set(end, way)
    choices = nextChoices(made, moduli)
  }
  return { ways: [...ends.values()], isPartial: false }
}

/** Like the digits of a counter, the last one first; undefined after the last. */
function nextChoices(made: readonly number[], moduli: readonly number[]): number[] | undefined {
  const choices = moduli.map((_, i) => made[i] ?? 0)
  while (choices.length > 0) {
    const last = choices.length - 1
    if (choices[last]! + 1 < moduli[last]!) {
      choices[last]!++
      return choices
    }
    choices.pop()
  }
  return undefined
}
