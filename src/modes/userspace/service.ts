// How one service port looks in the table: elements that say where the proxy serves it. They do not change when its
// endpoints do, for these are the proxy's own business.

import type { Bytes, Family } from '../../lib/ip.ts'
import type { Frontend, NodeView, ServicePortView, Verdict } from '../../model/types.ts'
import { addressField, portField, protocolField } from '../../state/nftables/fields.ts'
import { EMPTY_FRAGMENT, type Fragment } from '../../state/nftables/fragment.ts'
import type { NftSet, Table } from '../../state/nftables/types.ts'
import {
  Elements,
  frontendKey,
  isSplit,
  mainVerdict,
  planClusterIp,
  planRefusals,
  planSources,
} from '../shared/frontend.ts'
import { type Schema, schemaFor } from './schema.ts'

/** Which of a service port's two lists of backends. */
export type List = 'Cluster' | 'Local'

export interface ListenerAddress {
  readonly address: string
  readonly port: number
}

/** Where a service port's list is served; undefined when it cannot be. */
export type FindListener = (view: ServicePortView, list: List) => ListenerAddress | undefined

export function planService(node: NodeView, view: ServicePortView, find: FindListener): Fragment {
  const schema = schemaFor(node.family)
  const elements = new Elements()
  const planner = new FrontendPlanner(schema, elements, (list) => find(view, list))
  for (const frontend of view.frontends) planner.plan(frontend)
  planner.planListeners(view)
  return { ...EMPTY_FRAGMENT, elements: elements.list() }
}

class FrontendPlanner {
  readonly #schema: Schema
  readonly #elements: Elements
  readonly #find: (list: List) => ListenerAddress | undefined
  readonly #usedPorts = new Set<number>()

  constructor(schema: Schema, elements: Elements, find: (list: List) => ListenerAddress | undefined) {
    this.#schema = schema
    this.#elements = elements
    this.#find = find
  }

  plan(frontend: Frontend): void {
    const schema = this.#schema
    planClusterIp(schema, frontend, this.#elements)
    planRefusals(schema, frontend, this.#elements)
    planSources(schema, frontend, this.#elements)
    const byNodePort = frontend.kind === 'nodePort'
    const key = frontendKey(frontend)
    let isServed = this.#serve(byNodePort ? schema.nodePorts : schema.services, key, mainVerdict(frontend))
    if (isSplit(frontend)) {
      const map = byNodePort ? schema.localNodePorts : schema.localServices
      this.#elements.add(byNodePort ? schema.splitNodePorts : schema.splitServices, { key })
      isServed = this.#serve(map, key, frontend.fromOthers.verdict) && isServed
    }
    // Nobody serves it though there are backends: better a clear answer than none.
    if (!isServed) this.#elements.add(byNodePort ? schema.rejectNodePorts : schema.rejectServices, { key })
  }

  /** The ports that are not for direct use. */
  planListeners({ protocol }: ServicePortView): void {
    for (const port of this.#usedPorts) {
      this.#elements.add(this.#schema.listeners, { key: protocolField(protocol) + portField(port) })
    }
  }

  /** False when there is something to serve and nobody who does. */
  #serve(map: NftSet, key: Bytes, verdict: Verdict): boolean {
    if (verdict.kind !== 'to') return true
    const listener = this.#find(verdict.policy)
    if (listener === undefined) return false
    this.#usedPorts.add(listener.port)
    this.#elements.add(map, { key, data: addressField(listener.address) + portField(listener.port) })
    return true
  }
}

/** Which port a table that was read back has for a service port's list: that of any frontend that uses it. */
export function listenerPorts(
  family: Family,
  table: Table | undefined,
): (view: ServicePortView, list: List) => number | undefined {
  const schema = schemaFor(family)
  return (view, list) => {
    for (const frontend of view.frontends) {
      const byNodePort = frontend.kind === 'nodePort'
      const main = mainVerdict(frontend)
      const isMain = main.kind === 'to' && main.policy === list
      const others = frontend.fromOthers.verdict
      if (!isMain && !(others.kind === 'to' && others.policy === list)) continue
      const { name } = isMain
        ? schema[byNodePort ? 'nodePorts' : 'services']
        : schema[byNodePort ? 'localNodePorts' : 'localServices']
      const data = table?.elements.get(name)?.get(frontendKey(frontend))?.data
      if (data !== undefined) return portAtEnd(data)
    }
    return undefined
  }
}

function portAtEnd(data: Bytes): number {
  const at = data.length - portField(0).length
  return (data.charCodeAt(at) << 8) | data.charCodeAt(at + 1)
}
