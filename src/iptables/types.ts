// Rules of iptables as data.
//
// Only what our own rules are made of. A rule of another program is text to us, and stays as it is.

import type { Family } from '../lib/ip.ts'

export type TableName = 'filter' | 'nat' | 'mangle'

/** A rule without its chain, exactly as iptables-save prints it: `-d 10.0.0.1/32 -p tcp -m tcp --dport 80 -j KUBE-SVC-X`. */
export type RuleText = string

export interface Rule {
  readonly source?: NetworkMatch
  readonly destination?: NetworkMatch
  readonly inputInterface?: InterfaceMatch
  /** `tcp`, `udp`, `sctp`, `icmp`, `ipv6-icmp`. */
  readonly protocol?: string
  /** In the order in which they are tried. */
  readonly matches: readonly Match[]
  /** A rule without a target only counts. */
  readonly target: Target | undefined
}

export interface NetworkMatch {
  /** A CIDR with its prefix. */
  readonly network: string
  readonly not?: boolean
}

export interface InterfaceMatch {
  /** A name, or a prefix and `+`. */
  readonly name: string
  readonly not?: boolean
}

export type Match =
  | { readonly kind: 'comment'; readonly text: string }
  /** The protocol's own match; without a port it only says that the packet has ports. */
  | { readonly kind: 'ports'; readonly protocol: string; readonly destination?: number }
  | { readonly kind: 'isPing'; readonly family: Family }
  | { readonly kind: 'mark'; readonly value: number; readonly mask: number; readonly not?: boolean }
  /** True for one packet in `outOf`, at random: two in five are one in 2.5. */
  | { readonly kind: 'random'; readonly outOf: number }
  /** Notes the source in a list. */
  | { readonly kind: 'recentSet'; readonly list: string; readonly family: Family }
  /** Whether the source is in a list and came within so many seconds. */
  | { readonly kind: 'recentCheck'; readonly list: string; readonly family: Family; readonly seconds: number }
  | { readonly kind: 'conntrack'; readonly states: readonly string[]; readonly not?: boolean }
  /** Whether the address is one of this machine. */
  | { readonly kind: 'isLocal'; readonly side: 'src' | 'dst' }
  /** Whether more connections are open than so many, of all that met this rule, or of this client. */
  | { readonly kind: 'connlimit'; readonly most: number; readonly of: 'all' | Family }
  /**
   * Whether more packets come than so many in a second, all together or from each client by itself. The list has a name of 15
   * characters at most, and keeps the numbers that it began with.
   */
  | { readonly kind: 'hashlimit'; readonly list: string; readonly perSecond: number; readonly of: 'all' | 'client' }
  /** Counts in an object of nfacct. */
  | { readonly kind: 'count'; readonly counter: string }

export type Target =
  /** Continues in a chain and comes back from its end. */
  | { readonly kind: 'jump'; readonly chain: string }
  | { readonly kind: 'accept' }
  | { readonly kind: 'drop' }
  | { readonly kind: 'return' }
  | { readonly kind: 'reject'; readonly family: Family; readonly with?: 'reset' }
  /** Clears the bits of `mask` and toggles those of `value`. */
  | { readonly kind: 'setMark'; readonly value: number; readonly mask: number }
  | { readonly kind: 'masquerade'; readonly randomPorts: 'fully' | 'no' }
  /** `to` is `ip:port` or `[ip]:port`, or an address alone: then the port stays. */
  | { readonly kind: 'dnat'; readonly to: string }

/** The rules of a table by chain, in order. */
export type Chains = ReadonlyMap<string, readonly RuleText[]>

/** What a machine has of iptables, for one family. A table that is absent has not been read, or is not there. */
export type Tables = ReadonlyMap<TableName, Chains>
