// A packet's way through the ipvs mode: the rules around IPVS, and IPVS between them. Where IPVS sits and what it does is
// that of net/netfilter/ipvs/ip_vs_core.c and ip_vs_xmit.c.
//
// What is left out: connections that IPVS knows already (each packet here is the first), the order in which a scheduler
// chooses (any destination with a weight may be next), and that persistence may outlive its timeout by a minute.

import { type Bytes, formatIp, parseIp } from '../lib/ip.ts'
import { PROTOCOL_NUMBERS } from '../nftables/fields.ts'
import {
  type Packet,
  type Station,
  type Environment,
  type Taken,
  type Walk,
  type WalkedTable,
  walkTable,
} from '../nftables/walk.ts'
import { destinationKey, serverKey, type Destination, type PlannedServer, type ServerId } from './types.ts'

/** NF_IP_PRI_NAT_SRC - 1 and NF_IP_PRI_NAT_DST + 2: ip_vs_ops4, ip_vs_ops6. */
const HOOKS = [
  { hook: 'input', priority: 99 },
  { hook: 'output', priority: -98 },
] as const

/** What the mode has put into the kernel for one family. */
export interface IpvsState {
  readonly table: WalkedTable
  /** With all their destinations, those of weight 0 too. */
  readonly servers: readonly PlannedServer[]
  /** The addresses of kube-ipvs0: they are the machine's, so packets to them come to the input hook. */
  readonly addresses: ReadonlySet<string>
  /** What persistence remembers, by server and client; written to by packets. */
  readonly templates: Map<string, Template>
}

export interface Template {
  readonly destination: Destination
  readonly expiresMs: number
}

export function walkIpvs(state: IpvsState, packet: Packet, environment: Environment): Walk {
  const stations = HOOKS.map((place): Station => ({
    name: 'IPVS',
    ...place,
    meet: (met) => schedule(state, met, environment),
  }))
  return walkTable(
    state.table,
    packet,
    {
      ...environment,
      isLocalAddress: (address) => state.addresses.has(formatIp(address)) || environment.isLocalAddress(address),
    },
    stations,
  )
}

function schedule(
  { servers, templates }: IpvsState,
  { source, destination, protocol, destinationPort }: Parameters<Station['meet']>[0],
  environment: Environment,
): Taken | undefined {
  const address = formatIp(destination)
  const found = servers.find(
    ({ server }) =>
      server.address === address && server.port === destinationPort && PROTOCOL_NUMBERS[server.protocol] === protocol,
  )
  if (found === undefined) return undefined
  const { server } = found
  const open = found.destinations.filter(({ weight }) => weight > 0)
  // ip_vs_leave(): a port that is unreachable.
  if (open.length === 0) return { kind: 'reject' }
  if (server.persistenceSeconds === undefined) return sendTo(open[environment.random(open.length)]!)
  const key = templateKey(server, formatIp(source))
  const known = templates.get(key)
  const nowMs = environment.now()
  const isAlive = known !== undefined && known.expiresMs > nowMs
  // expire_quiescent_template: a destination that takes no new connections keeps no clients.
  const kept = isAlive ? open.find((each) => destinationKey(each) === destinationKey(known.destination)) : undefined
  const chosen = kept ?? open[environment.random(open.length)]!
  templates.set(key, { destination: chosen, expiresMs: nowMs + server.persistenceSeconds * 1000 })
  return sendTo(chosen)
}

/** What persistence remembers of a client is found by this. */
export function templateKey(server: ServerId, client: string): string {
  return `${serverKey(server)} ${client}`
}

function sendTo({ address, port }: Destination): Taken {
  return { kind: 'send', destination: bytesOf(address), destinationPort: port }
}

function bytesOf(address: string): Bytes {
  const bytes = parseIp(address)
  if (bytes === undefined) throw new Error(`Cannot walk to ${address}: not an address`)
  return bytes
}
