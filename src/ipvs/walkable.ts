// The ipvs mode as it was read back or planned, for packets to walk through on paper.

import { formatIp, joinHostPort } from '../lib/ip.ts'
import type { Walkable } from '../lib/packet-walk.ts'
import { type DynamicElements, packetOf, environmentOf, wayOf } from '../nftables/walkable.ts'
import { formatServerId } from './format.ts'
import type { DestinationState, PlannedServer } from './types.ts'
import { type IpvsState, templateKey, walkIpvs } from './walk.ts'

export function walkableIpvs(state: IpvsState, dynamicElements: DynamicElements): Walkable {
  return {
    what: `table ${state.table.family} ${state.table.name} and ${state.servers.length} virtual servers`,
    walk(asked, around) {
      // To an address of its own the machine sends from that address, and those of services are its own here.
      const isOwn = asked.inputInterface === undefined && state.addresses.has(formatIp(asked.destination))
      const packet = isOwn ? { ...asked, source: asked.destination } : asked
      const own = { ...state, templates: new Map(state.templates) }
      // Weights aside, the scheduler may choose any.
      const way = wayOf(state.table.name, walkIpvs(own, packetOf(packet), environmentOf(around, dynamicElements)))
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
