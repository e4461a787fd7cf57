// The packets that the doctor follows through the rules of other programs.

import { type Family, ipBytes, ipFamily, joinHostPort, parseIp } from '../../lib/ip.ts'
import { findWays } from '../../links/find-ways.ts'
import type { Explanation } from '../explain/explanation.ts'
import type { Known } from '../explain/known.ts'
import type { ForeignPacket } from './foreign.ts'

/** At most so many endpoints of a Service are followed and dialled. */
export const MOST_ENDPOINTS = 16
const MOST_SLICES = 100

interface Client {
  readonly source: string
  /** Undefined: this node. */
  readonly inputInterface: string | undefined
}

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
  const places = known.slices
    .filter(({ addressType }) => addressType === `IPv${family}`)
    .slice(0, MOST_SLICES)
    .flatMap(({ endpoints, ports }) => {
      const endpoint = endpoints.find(({ ready, address }) => ready && parseIp(address) !== undefined)
      const port = ports.find((each) => each.protocol === 'TCP' && each.port !== undefined)?.port
      return endpoint === undefined || port === undefined ? [] : [{ address: endpoint.address, port }]
    })
  return places.flatMap((place) => packetsFrom(clients, { ...place, protocol: 'TCP', isUntranslated: false }))
}

/** To the Service and to its endpoints: from the client, or from this node and a pod of it. */
export function packetsOf(known: Known, family: Family, { question, backends }: Explanation): ForeignPacket[] {
  const { source, destination, port, protocol } = question
  const isOwn = question.from === 'the node itself'
  const clients = isOwn ? clientsHere(known, family) : [clientBehindLink(source)]
  const endpoints = backends.filter(({ eligible }) => eligible).slice(0, MOST_ENDPOINTS)
  return [
    ...packetsFrom(clients, { address: destination, port, protocol, isUntranslated: true }),
    ...endpoints.flatMap((each) => packetsFrom(clients, { ...each, protocol, isUntranslated: false })),
  ]
}

function clientsHere(known: Known, family: Family): Client[] {
  const nodeIp = known.nodes[family]?.nodeIp
  const pods = localPods(known, family).slice(0, 1)
  return [
    ...(nodeIp === undefined ? [] : [{ source: nodeIp, inputInterface: undefined }]),
    ...pods.map((pod) => clientBehindLink(pod)),
  ]
}

function clientBehindLink(source: string): Client {
  const [way] = findWays([ipBytes(source)])
  return { source, inputInterface: way?.kind === 'link' ? way.link : 'eth0' }
}

interface Destination {
  readonly address: string
  readonly port: number
  readonly protocol: string
  readonly isUntranslated: boolean
}

function packetsFrom(clients: readonly Client[], destination: Destination): ForeignPacket[] {
  return clients.filter(({ source }) => source !== destination.address).map((client) => packetTo(destination, client))
}

export function packetTo({ address, port, protocol, isUntranslated }: Destination, from: Client): ForeignPacket {
  const { source, inputInterface } = from
  return {
    label: `a packet from ${inputInterface === undefined ? 'this node' : source} to ${joinHostPort(address, port)}`,
    isUntranslated,
    packet: {
      inputInterface,
      source: ipBytes(source),
      destination: ipBytes(address),
      destinationPort: port,
      sourcePort: 40_000,
      protocol: protocol as ForeignPacket['packet']['protocol'],
    },
  }
}
