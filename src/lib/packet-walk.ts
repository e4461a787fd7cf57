// What the walks of packets have in common, through whichever part of the kernel.

import type { Bytes } from './ip.ts'

/** The first packet of a connection. */
export interface FirstPacket {
  /** Where it enters the machine, or undefined when this machine sends it. */
  readonly inputInterface: string | undefined
  readonly source: Bytes
  readonly destination: Bytes
  readonly destinationPort: number
}

/** The rest of the machine, as far as rules can see it. */
export interface MachineAround {
  isLocalAddress(address: Bytes): boolean
  /** A number in 0..modulus-1. */
  random(modulus: number): number
  /** Milliseconds; only differences matter. */
  now(): number
}

/** What became of the packet, and the rules that matched. */
export interface PacketWalk<Step> {
  readonly verdict: 'accept' | 'drop' | 'reject'
  /** Where the packet goes in the end. */
  readonly destination: Bytes
  readonly destinationPort: number
  readonly translated: boolean
  readonly masqueraded: boolean
  readonly steps: readonly Step[]
}
