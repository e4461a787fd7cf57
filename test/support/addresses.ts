// The fixed addresses of the test network, for tests that walk planned state and for those that send real packets.
//
//   control (API server)   external client      peer node --- remote pods
//            \                  |                /
//             +-------- the LAN (a switch) -----+
//                              |
//                        node under test --- local pods, behind the bridge cni0
//
// The default route of all clients leads to the node under test, so it sees whatever is sent to a service address. Its own
// default route leads to the hole: an address of the switch that takes packets and answers nothing.

import type { Family } from '../../src/lib/ip.ts'

/** One address per IP family. */
export type DualStack = Readonly<Record<Family, string>>

/** Something with addresses of its own. */
export interface Host {
  readonly name: string
  readonly ip: DualStack
}

export interface Pod extends Host {
  /** The node that it runs on. */
  readonly nodeName: string
  readonly zone: string
}

/** The ranges, as the proxy's flags and API objects name them. */
export const ranges = {
  pods: { 4: '10.1.0.0/16', 6: 'fd01::/48' },
  localPods: { 4: '10.1.0.0/24', 6: 'fd01:0:0:a::/64' },
  remotePods: { 4: '10.1.1.0/24', 6: 'fd01:0:0:b::/64' },
  /** Every address of this one is answered by the pod localC, so that a service can have many endpoints. */
  manyPods: { 4: '10.1.2.0/24', 6: 'fd01:0:0:c::/64' },
  services: { 4: '10.2.0.0/16', 6: 'fd02::/112' },
  /** Addresses for services, beyond the range of all others: while no proxy serves them, the control namespace does. */
  unserved: { 4: '10.5.0.0/24', 6: 'fd05::/64' },
  lan: { 4: '10.3.0.0/24', 6: 'fd03::/64' },
  /** Every address of these belongs to the external client, so that one test can have many clients. */
  crowd: { 4: '10.6.0.0/24', 6: 'fd06::/64' },
} as const satisfies Record<string, DualStack>

/** The node under test. */
export const node = {
  name: 'node-a',
  zone: 'zone-a',
  ip: { 4: '10.3.0.10', 6: 'fd03::10' },
  /** A further address of the same interface, which the Node object does not name. */
  secondIp: { 4: '10.3.0.20', 6: 'fd03::20' },
  bridgeIp: { 4: '10.1.0.1', 6: 'fd01:0:0:a::1' },
  bridge: 'cni0',
} as const

/** A second node: it only routes. */
export const peer = {
  name: 'node-b',
  zone: 'zone-b',
  ip: { 4: '10.3.0.11', 6: 'fd03::11' },
  bridgeIp: { 4: '10.1.1.1', 6: 'fd01:0:0:b::1' },
} as const

/** A client outside the cluster. */
export const external = {
  name: 'external',
  ip: { 4: '10.3.0.100', 6: 'fd03::100' },
  secondIp: { 4: '10.3.0.101', 6: 'fd03::101' },
} as const

/** Where the test process lives, and the API server with it. */
export const control = { name: 'control', ip: { 4: '10.3.0.1', 6: 'fd03::1' } } as const

/** The port that it answers on, at the unserved addresses. */
export const unservedPort = 80

/** The n-th (from 1) of the unserved addresses; there are 250, and then the first comes again. */
export function unservedIp(family: Family, n: number): string {
  const host = 1 + ((n - 1) % 250)
  return family === 4 ? `10.5.0.${host}` : `fd05::${host.toString(16)}`
}

/** Swallows what the proxy leaves alone. */
export const hole = { name: 'hole', ip: { 4: '10.3.0.254', 6: 'fd03::fe' } } as const

function aPod(name: string, on: typeof node | typeof peer, hostPart: number): Pod {
  const network = on === node ? { 4: '10.1.0.', 6: 'fd01:0:0:a::' } : { 4: '10.1.1.', 6: 'fd01:0:0:b::' }
  return {
    name,
    nodeName: on.name,
    zone: on.zone,
    ip: { 4: `${network[4]}${hostPart}`, 6: `${network[6]}${hostPart}` },
  }
}

/** The pods. Each answers on TCP 8080 and 9090 and on UDP and SCTP 8080, telling its name and the client it saw. */
export const pods = {
  localA: aPod('localA', node, 11),
  localB: aPod('localB', node, 12),
  localC: aPod('localC', node, 13),
  remoteA: aPod('remoteA', peer, 11),
  remoteB: aPod('remoteB', peer, 12),
} as const

export type PodName = keyof typeof pods

/** The ports that every pod, and the node under test, answers on. */
export const echoPorts = { tcp: [8080, 9090], udp: [8080], sctp: [8080] } as const

/** The n-th client (from 1) of the crowd that lives in the external client. */
export function crowdIp(family: Family, n: number): string {
  return family === 4 ? `10.6.0.${n}` : `fd06::${n.toString(16)}`
}

/** The backend that answers at an address of an endpoint; undefined: none. */
export function hostAt(address: string): PodName | 'node' | undefined {
  if (address.startsWith('10.1.2.') || address.startsWith('fd01:0:0:c:')) return 'localC'
  if (address === node.ip[4] || address === node.ip[6]) return 'node'
  const found = Object.entries(pods).find(([, pod]) => pod.ip[4] === address || pod.ip[6] === address)
  return found?.[0] as PodName | undefined
}

/** Every address of the node under test, of both families. */
export const nodeAddresses: readonly string[] = [node.ip, node.secondIp, node.bridgeIp].flatMap((ip) => [ip[4], ip[6]])
