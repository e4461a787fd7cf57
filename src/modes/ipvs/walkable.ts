// A packet's way through the ipvs mode: the rules around IPVS, and IPVS between them; as read from the kernel or as planned.

import { formatServerId } from '../../ipvs/format.ts'
import type { DestinationState, PlannedServer } from '../../ipvs/types.ts'
import { ipvsStations, type Template, templateKey, type VirtualServers } from '../../ipvs/walk.ts'
import { formatIp, joinHostPort } from '../../lib/ip.ts'
import { nftFamily } from '../../nftables/language.ts'
import { readTableAndDynamicElements } from '../../nftables/read-walkable.ts'
import { type Environment, type Walk, type WalkedTable, walkTable } from '../../nftables/walk.ts'
import { type DynamicElements, environmentOf, wayOf } from '../../nftables/walkable.ts'
import type { Packet, Walkable } from '../../packet-walk/types.ts'
import type { WalkableOptions } from '../contract.ts'
import { TABLE } from './plan/names.ts'
import { readIpvsMachine } from './read-machine.ts'

/** What the mode has put into the kernel for one family. */
export interface IpvsState extends VirtualServers {
  readonly table: WalkedTable
  /** The addresses of kube-ipvs0: they are the machine's, so packets to them come to the input hook. */
  readonly addresses: ReadonlySet<string>
}

export function readIpvs({ family, now }: WalkableOptions): Walkable | undefined {
  const read = readTableAndDynamicElements({ family: nftFamily(family), table: TABLE }, now())
  if (read === undefined) return undefined
  const { table, dynamicElements } = read
  const { servers, addresses, persistence } = readIpvsMachine(family)
  const templates = new Map(
    persistence.map(({ protocol, client, server, destination, secondsLeft }): [string, Template] => [
      templateKey({ family, protocol, ...server }, client),
      { destination: { ...destination, weight: 1 }, expiresMs: now() + secondsLeft * 1000 },
    ]),
  )
  return walkableIpvs({ table, servers, addresses: new Set(addresses.own), templates }, dynamicElements)
}

export function walkIpvs(state: IpvsState, packet: Packet, environment: Environment): Walk {
  const isLocalAddress: Environment['isLocalAddress'] = (address) =>
    state.addresses.has(formatIp(address)) || environment.isLocalAddress(address)
  return walkTable(state.table, packet, { ...environment, isLocalAddress }, ipvsStations(state, environment))
}

export function walkableIpvs(state: IpvsState, dynamicElements: DynamicElements): Walkable {
  return {
    what: `table ${state.table.family} ${state.table.name} and ${state.servers.length} virtual servers`,
    walk(asked, around) {
      // To an address of its own the machine sends from that address, and those of services are its own here.
      const isOwn = asked.inputInterface === undefined && state.addresses.has(formatIp(asked.destination))
      const packet = isOwn ? { ...asked, source: asked.destination } : asked
      const own = { ...state, templates: new Map(state.templates) }
      // Weights aside, the scheduler may choose any.
      const way = wayOf(state.table, walkIpvs(own, packet, environmentOf(around, dynamicElements)))
      const server = state.servers.find(
        (each) =>
          each.server.protocol === packet.protocol &&
          each.server.port === packet.destinationPort &&
          each.server.address === formatIp(packet.destination),
      )
      if (server === undefined) return way
      const reached = joinHostPort(formatIp(way.destination), way.destinationPort)
      const { verdict, destination, destinationPort, translated, masqueraded } = way
      const template = state.templates.get(templateKey(server.server, formatIp(packet.source)))
      const isKept =
        template !== undefined && joinHostPort(template.destination.address, template.destination.port) === reached
      const affinityEntry =
        isKept && template.expiresMs > around.now()
          ? { endpoint: reached, expiresMs: template.expiresMs }
          : way.affinityEntry
      return {
        verdict,
        destination,
        destinationPort,
        translated,
        masqueraded,
        affinityEntry,
        get steps() {
          return way.steps.map((step) =>
            step.place === 'IPVS' ? { ...step, found: describeServer(server, reached) } : step,
          )
        },
      }
    },
  }
}

function describeServer({ server, destinations }: PlannedServer, reached: string): string[] {
  const chosen = destinations.find(({ address, port }) => joinHostPort(address, port) === reached)
  const counts = chosen === undefined || !('activeConnections' in chosen) ? '' : connections(chosen as DestinationState)
  return [
    `virtual server ${formatServerId(server)} ${server.scheduler}, ${destinations.length} destinations`,
    ...(chosen === undefined ? [] : [`destination ${reached} weight ${chosen.weight}${counts}`]),
  ]
}

function connections({ activeConnections, inactiveConnections }: DestinationState): string {
  return `, ${activeConnections} active and ${inactiveConnections} inactive connections`
}
