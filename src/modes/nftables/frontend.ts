// What the planners of services, lists and affinity share: which sets a frontend uses, and how it is keyed.

import type { Bytes } from '../../lib/ip.ts'
import type { Backend, Frontend, Verdict } from '../../model/types.ts'
import { addressField, portField, protocolField } from '../../state/nftables/fields.ts'
import type { Fragment } from '../../state/nftables/fragment.ts'
import type { Element, NftSet } from '../../state/nftables/types.ts'
import type { Schema } from './schema.ts'

type Setting = keyof Schema

/** The sets that a frontend with an address uses, and those that a node port uses. */
export const BY_ADDRESS = {
  served: 'services',
  servedLocally: 'localServices',
  masquerade: 'masqueradeServices',
  reject: 'rejectServices',
  drop: 'dropServices',
  endpoints: 'endpoints',
  localEndpoints: 'localEndpoints',
  stick: 'stickServices',
  stickLocal: 'stickLocalServices',
  remember: 'rememberServices',
} as const satisfies Record<string, Setting>

export const BY_NODE_PORT = {
  served: 'nodePorts',
  servedLocally: 'localNodePorts',
  masquerade: 'masqueradeNodePorts',
  reject: 'rejectNodePorts',
  drop: 'dropNodePorts',
  endpoints: 'nodePortEndpoints',
  localEndpoints: 'localNodePortEndpoints',
  stick: 'stickNodePorts',
  stickLocal: 'stickLocalNodePorts',
  remember: 'rememberNodePorts',
} as const satisfies Record<string, Setting>

export type FrontendSets = typeof BY_ADDRESS | typeof BY_NODE_PORT

export function setsOf(frontend: Frontend): FrontendSets {
  return frontend.kind === 'nodePort' ? BY_NODE_PORT : BY_ADDRESS
}

/** Collects the elements of one fragment by set. */
export class Elements {
  readonly #bySet = new Map<NftSet, Element[]>()

  add(set: NftSet, element: Element): void {
    const list = this.#bySet.get(set)
    if (list === undefined) this.#bySet.set(set, [element])
    else list.push(element)
  }

  list(): Fragment['elements'] {
    return Array.from(this.#bySet, ([set, elements]) => ({ set, elements }))
  }
}

export function frontendKey(frontend: Frontend): Bytes {
  const suffix = protocolField(frontend.protocol) + portField(frontend.port)
  return frontend.address === undefined ? suffix : addressField(frontend.address) + suffix
}

/** The list that pods and the node use, which is everybody's unless the policy is Local. */
export function mainVerdict(frontend: Frontend): Verdict {
  return frontend.fromNode.verdict
}

/** Whether outside clients are treated otherwise: externalTrafficPolicy Local. */
export function isSplit(frontend: Frontend): boolean {
  const main = mainVerdict(frontend)
  const others = frontend.fromOthers.verdict
  return main.kind === 'to' && !(others.kind === 'to' && others.policy === main.policy)
}

export function endpointData(backend: Backend): Bytes {
  return addressField(backend.ip) + portField(backend.port)
}
