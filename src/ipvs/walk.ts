// A packet's way through IPVS: what net/netfilter/ipvs/ip_vs_core.c and ip_vs_xmit.c would do, and at which hooks.
//
// Left out: connections that IPVS has already (each packet here is the first), the order in which a scheduler chooses (any
// destination with a weight may be next), and that persistence may outlive its timeout by a minute.

import { formatIp, ipBytes } from '../lib/ip.ts'
import type { Host, Station, Taken } from '../packet-walk/types.ts'
import { destinationKey, serverKey, type Destination, type PlannedServer, type ServerId } from './types.ts'

/** NF_IP_PRI_NAT_SRC - 1 and NF_IP_PRI_NAT_DST + 2: ip_vs_ops4, ip_vs_ops6. */
const HOOKS = [
  { hook: 'input', priority: 99 },
  { hook: 'output', priority: -98 },
] as const

export interface VirtualServers {
  /** With all their destinations, those of weight 0 too. */
  readonly servers: readonly PlannedServer[]
  /** Persistence entries, by server and client; written to by packets. */
  readonly templates: Map<string, Template>
}

export interface Template {
  readonly destination: Destination
  readonly expiresMs: number
}

/** IPVS as a packet meets it: at two hooks, each time before the chains of a higher priority. */
export function ipvsStations(state: VirtualServers, host: Host): Station[] {
  return HOOKS.map((place) => ({ name: 'IPVS', ...place, meet: (packet) => schedule(state, packet, host) }))
}

function schedule(
  { servers, templates }: VirtualServers,
  { source, destination, protocol, destinationPort }: Parameters<Station['meet']>[0],
  host: Host,
): Taken | undefined {
  const address = formatIp(destination)
  const found = servers.find(
    ({ server }) => server.address === address && server.port === destinationPort && server.protocol === protocol,
  )
  if (found === undefined) return undefined
  const { server } = found
  const open = found.destinations.filter(({ weight }) => weight > 0)
  // ip_vs_leave(): a port that is unreachable.
  if (open.length === 0) return { kind: 'reject' }
  if (server.persistenceSeconds === undefined) return sendTo(open[host.random(open.length)]!)
  const key = templateKey(server, formatIp(source))
  const known = templates.get(key)
  const nowMs = host.now()
  const isAlive = known !== undefined && known.expiresMs > nowMs
  // expire_quiescent_template: a destination that takes no new connections keeps no clients.
  const kept = isAlive ? open.find((each) => destinationKey(each) === destinationKey(known.destination)) : undefined
  const chosen = kept ?? open[host.random(open.length)]!
  templates.set(key, { destination: chosen, expiresMs: nowMs + server.persistenceSeconds * 1000 })
  return sendTo(chosen)
}

/** The key of the persistence entry of a client. */
export function templateKey(server: ServerId, client: string): string {
  return `${serverKey(server)} ${client}`
}

function sendTo({ address, port }: Destination): Taken {
  return { kind: 'send', destination: ipBytes(address), destinationPort: port }
}
