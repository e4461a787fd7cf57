// How one service port looks in the table: elements that say where the proxy serves it. They do not change when its
// endpoints do, for these are the proxy's own business.

import { type Bytes, type Family, formatIp, asBytes } from '../../../lib/ip.ts'
import type { Frontend, NodeView, ServicePortView } from '../../../model/types.ts'
import { addressField, portField, protocolField } from '../../../nftables/fields.ts'
import type { Fragment, SharedRule } from '../../../nftables/fragment.ts'
import type { NftSet, Table } from '../../../nftables/types.ts'
import { Elements, frontendKey, planClusterIp, planRefusals } from '../../../table-sync/plan/frontend.ts'
import { planSources } from '../../../table-sync/plan/sources.ts'
import { type Entrance, entranceFor, type Source, SOURCES } from './entrance.ts'
import { type Schema, schemaFor } from './schema.ts'

export interface DoorAddress {
  readonly address: string
  readonly port: number
}

/** Where the proxy has this entrance of a service port; undefined when it has none. */
export type FindDoor = (view: ServicePortView, entrance: Entrance) => DoorAddress | undefined

/** The doors to which no rule leads any more, and that are open for clients who came before. */
export type FindLeaving = (view: ServicePortView) => readonly DoorAddress[]

export interface Doors {
  readonly find: FindDoor
  readonly leaving: FindLeaving
}

export function planFragment(node: NodeView, view: ServicePortView, { find, leaving }: Doors): Fragment {
  const schema = schemaFor(node.family)
  const elements = new Elements()
  const sharedRules = new Set<SharedRule>()
  const listeners = new Set(leaving(view).map((door) => listenerKey(view, door)))
  for (const frontend of view.frontends) {
    planClusterIp(schema.guards, frontend, elements)
    planSources(schema.guards, frontend, { elements, sharedRules })
    const isServed = planDoors(schema, frontend, { elements, listeners, find: (entrance) => find(view, entrance) })
    // There are backends, and no door to them: better a clear answer than none.
    planRefusals(schema.guards, frontend, elements, isServed ? undefined : 'reject')
  }
  for (const key of listeners) elements.add(schema.doors, { key })
  return { sets: [], chains: [], sharedRules: [...sharedRules], dynamicMaps: [], elements: elements.list() }
}

interface Target {
  readonly elements: Elements
  /** Keys of the listeners in use. */
  readonly listeners: Set<Bytes>
  readonly find: (entrance: Entrance) => DoorAddress | undefined
}

/** False when a client that is to be served has no door. */
function planDoors(schema: Schema, frontend: Frontend, { elements, listeners, find }: Target): boolean {
  const key = frontendKey(frontend)
  let isServed = true
  for (const source of SOURCES) {
    const entrance = entranceFor(frontend, source)
    const door = entrance && find(entrance)
    if (door !== undefined) {
      listeners.add(listenerKey(frontend, door))
      elements.add(mapFor(schema, frontend, source), {
        key,
        data: asBytes(addressField(door.address) + portField(door.port)),
      })
    } else if (entrance !== undefined) isServed = false
  }
  return isServed
}

/** Which port a table that was read back has for an entrance of a service port: that of any frontend with this entrance. */
export function knownPorts(
  family: Family,
  table: Table | undefined,
): (view: ServicePortView, entrance: Entrance) => number | undefined {
  const schema = schemaFor(family)
  return (view, { list, seenAs }) => {
    for (const frontend of view.frontends) {
      for (const source of SOURCES) {
        const entrance = entranceFor(frontend, source)
        if (entrance?.list !== list || entrance.seenAs !== seenAs) continue
        const elements = table?.elements.get(mapFor(schema, frontend, source).name)
        const data = elements?.get(frontendKey(frontend))?.data
        if (data !== undefined) return portAtEnd(data)
      }
    }
    return undefined
  }
}

/** Where a table that was read back leads clients, whichever process wrote it. */
export function doorsIn(family: Family, table: Table | undefined): DoorAddress[] {
  const { services, nodePorts } = schemaFor(family)
  const maps = SOURCES.flatMap((source) => [services[source].name, nodePorts[source].name])
  const found = new Map<Bytes, DoorAddress>()
  for (const map of maps) {
    for (const { data } of table?.elements.get(map)?.values() ?? []) {
      if (data === undefined || found.has(data)) continue
      found.set(data, { address: formatIp(data.slice(0, family === 4 ? 4 : 16)), port: portAtEnd(data) })
    }
  }
  return [...found.values()]
}

/** Its address belongs to it: other programs may listen on other addresses of this machine with the same port. */
function listenerKey({ protocol }: Pick<Frontend, 'protocol'>, { address, port }: DoorAddress): Bytes {
  return asBytes(addressField(address) + protocolField(protocol) + portField(port))
}

function mapFor({ nodePorts, services }: Schema, { kind }: Frontend, source: Source): NftSet {
  return kind === 'nodePort' ? nodePorts[source] : services[source]
}

function portAtEnd(data: Bytes): number {
  const at = data.length - portField(0).length
  return (data.charCodeAt(at) << 8) | data.charCodeAt(at + 1)
}
