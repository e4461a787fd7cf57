// How one service port looks in the table: elements that say where the proxy serves it. They do not change when its
// endpoints do, for these are the proxy's own business.

import { type Bytes, type Family, formatIp, asBytes } from '../../../lib/ip.ts'
import type { Frontend, NodeView, ServicePortView } from '../../../model/types.ts'
import { addressField, portField, protocolField } from '../../../nftables/fields.ts'
import type { Fragment, SharedRule } from '../../../nftables/fragment.ts'
import type { NftSet, Table } from '../../../nftables/types.ts'
import { Elements, frontendKey, planClusterIp, planRefusals } from '../../../table-sync/plan/frontend.ts'
import { planLimits } from '../../../table-sync/plan/limits.ts'
import { nodePortGuard } from '../../../table-sync/plan/match.ts'
import { planPing } from '../../../table-sync/plan/ping.ts'
import { planSources } from '../../../table-sync/plan/sources.ts'
import { type Entrance, entranceFor, type EntranceId, entranceId, type Source, SOURCES } from './entrance.ts'
import { CHAINS } from './names.ts'
import { type Schema, schemaFor } from './schema.ts'

export interface ListenAddress {
  readonly address: string
  readonly port: number
}

/** A service port with the listeners of the proxy for it. */
export interface ServedPort extends ServicePortView {
  /** By entrance, without those that could not be opened. */
  readonly listeners: ReadonlyMap<EntranceId, ListenAddress>
  /** To these no rule leads any more; they are open for clients who came before. */
  readonly leaving: readonly ListenAddress[]
}

export function planFragment(node: NodeView, port: ServedPort): Fragment {
  const schema = schemaFor(node.family)
  const elements = new Elements()
  const sharedRules = new Set<SharedRule>()
  const used = new Set(port.leaving.map((listener) => listenerKey(port, listener)))
  for (const frontend of port.frontends) {
    planClusterIp(schema.guards, frontend, elements)
    planPing(node, frontend, elements)
    planSources(schema.guards, frontend, { elements, sharedRules })
    const isServed = planListeners(schema, frontend, { elements, used, port })
    // There are backends, and no listener to them: better a clear answer than none.
    planRefusals(schema.guards, frontend, elements, isServed ? undefined : 'reject')
  }
  for (const key of used) elements.add(schema.listeners, { key })
  const {
    sets,
    chains,
    sharedRules: ofLimits,
  } = planLimits(node.family, port, {
    elements,
    chains: { services: CHAINS.services, nodePorts: CHAINS.services, nodePortGuard: nodePortGuard(node) },
  })
  for (const shared of ofLimits) sharedRules.add(shared)
  return { sets, chains, sharedRules: [...sharedRules], dynamicMaps: [], elements: elements.list() }
}

interface Target {
  readonly elements: Elements
  /** Keys of the listeners in use. */
  readonly used: Set<Bytes>
  readonly port: ServedPort
}

/** False when a client that is to be served has no listener. */
function planListeners(schema: Schema, frontend: Frontend, { elements, used, port }: Target): boolean {
  const key = frontendKey(frontend)
  let isServed = true
  for (const source of SOURCES) {
    const entrance = entranceFor(frontend, source)
    const listener = entrance && port.listeners.get(entranceId(entrance))
    if (listener !== undefined) {
      used.add(listenerKey(frontend, listener))
      elements.add(mapFor(schema, frontend, source), {
        key,
        data: asBytes(addressField(listener.address) + portField(listener.port)),
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
export function listenersIn(family: Family, table: Table | undefined): ListenAddress[] {
  const { services, nodePorts } = schemaFor(family)
  const maps = SOURCES.flatMap((source) => [services[source].name, nodePorts[source].name])
  const found = new Map<Bytes, ListenAddress>()
  for (const map of maps) {
    for (const { data } of table?.elements.get(map)?.values() ?? []) {
      if (data === undefined || found.has(data)) continue
      found.set(data, { address: formatIp(data.slice(0, family === 4 ? 4 : 16)), port: portAtEnd(data) })
    }
  }
  return [...found.values()]
}

/** Its address belongs to it: other programs may listen on other addresses of this machine with the same port. */
function listenerKey({ protocol }: Pick<Frontend, 'protocol'>, { address, port }: ListenAddress): Bytes {
  return asBytes(addressField(address) + protocolField(protocol) + portField(port))
}

function mapFor({ nodePorts, services }: Schema, { kind }: Frontend, source: Source): NftSet {
  return kind === 'nodePort' ? nodePorts[source] : services[source]
}

function portAtEnd(data: Bytes): number {
  const at = data.length - portField(0).length
  return (data.charCodeAt(at) << 8) | data.charCodeAt(at + 1)
}
