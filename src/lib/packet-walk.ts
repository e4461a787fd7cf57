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
export interface Host {
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

/** A packet in the words that all parts of the kernel share. */
export interface WalkedPacket extends FirstPacket {
  readonly protocol: 'TCP' | 'UDP' | 'SCTP'
  readonly sourcePort: number
}

/** A rule, or another object of the kernel, that a packet met. */
export interface KernelStep {
  /** `prerouting`, `input`, ... */
  readonly hook: string
  /** A chain with its table, `IPVS`, a listener. */
  readonly place: string
  /** The rule in the words of its own tool. */
  readonly rule: string
  readonly comment?: string | undefined
  /** Elements of sets and maps that the rule found: `service-ips: 10.0.0.1 . tcp . 80`. */
  readonly found: readonly string[]
  /** Where the object counts. */
  readonly counted?: { readonly packets: bigint; readonly bytes: bigint } | undefined
}

/** What affinity remembers about the client of a packet, where it is the reason for the way. */
export interface AffinityEntry {
  readonly endpoint: string | undefined
  /** on the clock of Host. */
  readonly expiresMs: number
}

export interface KernelWay extends PacketWalk<KernelStep> {
  readonly affinityEntry?: AffinityEntry | undefined
}

/** What is in the kernel, or would be, for one IP family: a packet can be sent through it on paper. Walking changes nothing. */
export interface Walkable {
  /** For a person: `table ip kube-proxy`. */
  readonly what: string
  /** Where the rules lead to a process that carries the connection on, the walk ends at its door. */
  readonly endsAt?: 'the proxy' | undefined
  walk(packet: WalkedPacket, around: Host): KernelWay
}
