// What the kernel says about packets that it dropped, for people.

import { readFileSync } from 'node:fs'
import { type Drop, DropWatch } from '../../bpf/drop-watch.ts'
import { messageOf } from '../../lib/errors.ts'
import { joinHostPort } from '../../lib/ip.ts'
import type { ExplainedDrop } from './explanation.ts'
import { placeOf } from './networks.ts'

/** Why nothing is known of dropped packets. */
export interface Unwatched {
  readonly why: string
}

/** Never throws: it needs rights that not everybody has, and a kernel that describes its types. */
export function watchDrops(ports: readonly number[]): DropWatch | Unwatched {
  try {
    return new DropWatch([...new Set(ports)].slice(0, MOST_PORTS))
  } catch (error) {
    return { why: messageOf(error) }
  }
}

/** Each takes two instructions for each side and family. */
const MOST_PORTS = 64

/** Those between two of these addresses: of the client's port or, where that may be changed on the way, of any. */
export function dropsBetween(
  drops: readonly Drop[],
  addresses: ReadonlySet<string>,
  { clientPort, keepsPort }: { readonly clientPort: number; readonly keepsPort: boolean },
): Drop[] {
  const own = drops.filter(
    ({ source, destination, reason }) =>
      addresses.has(source) && addresses.has(destination) && reason !== 'QUEUE_PURGE',
  )
  const isClients = ({ sourcePort, destinationPort }: Drop) =>
    sourcePort === clientPort || destinationPort === clientPort
  const clients = own.filter(isClients)
  return keepsPort || clients.length > 0 ? clients : own
}

export function explainDrops(drops: readonly Drop[]): ExplainedDrop[] {
  const found = drops.map((drop): ExplainedDrop => {
    const { reason, location, source, sourcePort, destination, destinationPort, link, namespace } = drop
    const place = placeOf(namespace)
    return {
      packet: `${joinHostPort(source, sourcePort)} > ${joinHostPort(destination, destinationPort)}`,
      reason: reason ?? null,
      what: reason === undefined ? null : (WORDS[reason] ?? null),
      function: functionAt(location),
      link: link === '' ? null : link,
      where: place.where,
      enter: place.enter,
      rule: null,
    }
  })
  // A packet that is sent again is dropped again.
  const texts = new Set<string>()
  return found.filter((drop) => {
    const text = JSON.stringify(drop)
    return !texts.has(text) && texts.add(text)
  })
}

/** Reasons of include/net/dropreason-core.h that a person meets. */
const WORDS: Readonly<Record<string, string>> = {
  NETFILTER_DROP: 'a rule of netfilter drops it',
  NO_SOCKET: 'nobody listens on that port',
  SOCKET_FILTER: 'a filter of the socket drops it',
  SOCKET_RCVBUFF: "the socket's receive buffer is full",
  TCP_LISTEN_OVERFLOW: "the listener's queue is full",
  IP_INHDR: 'its hops (TTL) are used up, or its header is broken',
  IP_RPFILTER: 'rp_filter: its source has another way',
  IP_INNOROUTES: 'there is no route for it here',
  IP_OUTNOROUTES: 'there is no route to its destination',
  IP_INADDRERRORS: 'that machine forwards no packets (ip_forward), or its route says unreachable',
  IP_LOCAL_SOURCE: "its source is one of that machine's own addresses",
  IP_IN_INVALID_SOURCE: 'its source address is not possible here',
  IP_LOCALNET: 'a loopback address came from outside',
  IPV6DISABLED: 'IPv6 is switched off',
  NEIGH_FAILED: 'nobody on the link answers for its next hop (ARP, ND)',
  NEIGH_QUEUEFULL: 'too many packets wait for its next hop (ARP, ND)',
  NEIGH_CREATEFAIL: 'the table of neighbours is full',
  PKT_TOO_BIG: 'it is larger than the MTU',
  TC_INGRESS: 'a tc filter or BPF program drops it',
  TC_EGRESS: 'a tc filter or BPF program drops it',
  XDP: 'an XDP program drops it',
  QDISC_DROP: 'a queueing discipline drops it',
  CPU_BACKLOG: "the CPU's queue of packets is full",
  DEV_READY: 'the link is not ready',
  OTHERHOST: 'it carries the MAC address of another machine',
  BRIDGE_INGRESS_STP_STATE: 'the bridge port does not forward',
  XFRM_POLICY: 'a policy of IPsec (xfrm) forbids it',
  LSM: 'a security module forbids it',
  NOMEM: 'there was no memory',
}

/** Where a rule of another network namespace dropped a packet, and which packet. */
export interface ElsewhereDropped {
  readonly path: string
  readonly where: string
  readonly destination: string
  readonly destinationPort: number
}

/** The first drop by a rule in the network of a pod, or of another node of a sandbox. */
export function droppedElsewhere(drops: readonly Drop[]): ElsewhereDropped | undefined {
  for (const { reason, namespace, destination, destinationPort } of drops) {
    if (reason !== 'NETFILTER_DROP') continue
    const { path, where } = placeOf(namespace)
    if (path !== undefined) return { path, where, destination, destinationPort }
  }
  return undefined
}

let symbols: readonly (readonly [bigint, string])[] | undefined

/** Null where the kernel hides its addresses. */
function functionAt(location: bigint): string | null {
  symbols ??= readSymbols()
  let [low, high] = [0, symbols.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (symbols[middle]![0] <= location) low = middle + 1
    else high = middle
  }
  return low === 0 ? null : symbols[low - 1]![1]
}

function readSymbols(): (readonly [bigint, string])[] {
  let text: string
  try {
    text = readFileSync('/proc/kallsyms', 'latin1')
  } catch {
    return []
  }
  const found = Array.from(
    text.matchAll(/^([0-9a-f]+) [tTwW] (\S+)/gm),
    ([, address = '', name = '']) => [BigInt(`0x${address}`), name] as const,
  )
  return found.filter(([address]) => address !== 0n).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
}
