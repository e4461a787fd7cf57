// A packet's way through the kernel, computed: the vocabulary that nftables, iptables and IPVS share.

import type { Bytes } from '../lib/ip.ts'

/** The first packet of a connection. */
export interface Packet {
  /** ICMP, of either family: a ping, with 0 for its ports. */
  readonly protocol: 'TCP' | 'UDP' | 'SCTP' | 'ICMP'
  /** Undefined when this machine sends it. */
  readonly inputInterface: string | undefined
  readonly source: Bytes
  readonly sourcePort: number
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

/** What happened to the packet, and the rules that matched. */
export interface PacketWalk<Step> {
  readonly verdict: 'accept' | 'drop' | 'reject'
  /** Where the packet goes in the end. */
  readonly destination: Bytes
  readonly destinationPort: number
  readonly translated: boolean
  readonly masqueraded: boolean
  readonly steps: readonly Step[]
}

/** A part of the kernel that is no table but sits between the chains of a hook and may take the packet: IPVS. */
export interface Station {
  readonly name: string
  readonly hook: 'prerouting' | 'input' | 'forward' | 'output' | 'postrouting'
  readonly priority: number
  /** Undefined: the packet passes. */
  meet(packet: Pick<Packet, 'source' | 'destination' | 'protocol' | 'destinationPort'>): Taken | undefined
}

/** What a station does with a packet. */
export type Taken =
  | { readonly kind: 'reject' }
  /** Sends it there: what is not for this machine leaves it by the hooks output and postrouting. */
  | { readonly kind: 'send'; readonly destination: Bytes; readonly destinationPort: number }

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

/** The entry that binds the client of a packet to an endpoint, where it is the reason for the way. */
export interface AffinityEntry {
  readonly endpoint: string | undefined
  /** On the clock of Host. */
  readonly expiresMs: number
}

export interface KernelWay extends PacketWalk<KernelStep> {
  readonly affinityEntry?: AffinityEntry | undefined
}

/** What the kernel has, or would have, for one IP family. Walking through it changes nothing. */
export interface Walkable {
  /** For a person: `table ip kube-proxy`. */
  readonly what: string
  /** The rules lead to a process that carries the connection on: the walk stops at its listener. */
  readonly endsAt?: 'the proxy' | undefined
  walk(packet: Packet, around: Host): KernelWay
}
