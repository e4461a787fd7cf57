// The packets that the doctor follows through the rules of other programs: those to a Service, to its endpoints, and the answers.

import { type Family, ipBytes, ipFamily, parseIp, splitHostPort } from '../../lib/ip.ts'
import { findWays } from '../../links/find-ways.ts'
import type { Explanation } from '../explain/explanation.ts'
import type { Known } from '../explain/known.ts'
import { type Client, type Flow, packetsOfFlow, type Place } from './foreign-flow.ts'
import type { ForeignPacket } from './foreign-rules.ts'

/** The most endpoints of a Service that are followed and dialled. */
export const MOST_ENDPOINTS = 16
const MOST_SLICES = 100

/** Addresses of pods of this node. */
export function localPods({ slices, nodes, machineAddresses }: Known, family: Family): string[] {
  const nodeName = nodes[family]?.nodeName
  return slices
    .flatMap(({ endpoints }) => endpoints)
    .filter(({ nodeName: on, address }) => on === nodeName && ipFamily(address) === family)
    .flatMap(({ address }) => (machineAddresses.includes(address) ? [] : [address]))
}

/** To one endpoint of each of some Services, from this node and from a pod of it: a rule that drops everything drops one of these. */
export function packetsToServices(known: Known, family: Family): ForeignPacket[] {
  const clients = clientsHere(known, family)
  return known.slices
    .filter(({ addressType }) => addressType === `IPv${family}`)
    .slice(0, MOST_SLICES)
    .flatMap(({ endpoints, ports }) => {
      const endpoint = endpoints.find(({ ready, address }) => ready && parseIp(address) !== undefined)
      const port = ports.find((each) => each.protocol === 'TCP' && each.port !== undefined)?.port
      return endpoint === undefined || port === undefined ? [] : [{ address: endpoint.address, port }]
    })
    .flatMap((place) => {
      const [to] = places([place])
      return clients.flatMap((client) =>
        packetsOfFlow({
          client,
          service: undefined,
          endpoints: [to!],
          relay: undefined,
          mode: 'nftables',
          protocol: 'TCP',
        }),
      )
    })
}

/** This node's own attempts to reach the endpoints, and the answers. */
export function packetsOfTries(known: Known, family: Family, { question, backends }: Explanation): ForeignPacket[] {
  const [client] = clientsHere(known, family)
  const eligible = backends.filter((each) => each.eligible).slice(0, MOST_ENDPOINTS)
  if (client === undefined || question.protocol !== 'TCP') return []
  const endpoints = places(eligible)
  return packetsOfFlow({ client, service: undefined, endpoints, relay: undefined, mode: 'nftables', protocol: 'TCP' })
}

/** To the Service and to its endpoints, and back: from the client, or from this node and a pod of it. */
export function packetsOf(
  known: Known,
  family: Family,
  { question, backends, kernel, outcome }: Explanation,
): ForeignPacket[] {
  const { source, destination, port, protocol, mode } = question
  const isOwn = question.from === 'the node itself'
  const clients = isOwn ? clientsHere(known, family) : [clientAt(source)]
  const eligible = backends.filter((each) => each.eligible).slice(0, MOST_ENDPOINTS)
  const [way] = kernel?.ways ?? []
  const service = { address: ipBytes(destination), port }
  // Where the kernel leads to the proxy itself, that is what a firewall sees of the client's connection.
  const relay = mode === 'userspace' && way?.outcome === 'to' ? placeOf(way.destination) : undefined
  const mark = markOf(known, mode, family)
  const endpoints =
    outcome === 'to'
      ? places(eligible).map((place, i) => (eligible[i]!.masquerade ? { ...place, masqueradeMark: mark } : place))
      : []
  return clients.flatMap((client) =>
    packetsOfFlow({ client, service, endpoints, relay, mode, protocol: protocol as ForeignPacket['protocol'] }),
  )
}

/** Modes whose rules mark what is to be masqueraded, as soon as it is translated. */
const MARKING: ReadonlySet<string> = new Set(['nftables', 'iptables'])

export function markOf({ nodes }: Known, mode: string, family: Family): number | undefined {
  return MARKING.has(mode) ? nodes[family]?.masqueradeMark : undefined
}

function places(all: readonly { readonly address: string; readonly port: number }[]): Flow['endpoints'] {
  const addresses = all.map(({ address }) => ipBytes(address))
  const ways = findWays(addresses)
  return all.map(({ port }, i) => ({ address: addresses[i]!, port, way: ways[i]! }))
}

function placeOf(text: string): Place | undefined {
  const { ip, port } = splitHostPort(text)
  const address = parseIp(ip)
  return address && { address, port }
}

function clientsHere(known: Known, family: Family): Client[] {
  const nodeIp = known.nodes[family]?.nodeIp
  const pods = localPods(known, family).slice(0, 1)
  return [
    ...(nodeIp === undefined ? [] : [{ address: ipBytes(nodeIp), link: undefined }]),
    ...pods.map((pod) => clientAt(pod)),
  ]
}

function clientAt(source: string): Client {
  const address = ipBytes(source)
  const [way] = findWays([address])
  return { address, link: way?.kind === 'link' ? way.link : 'eth0' }
}
