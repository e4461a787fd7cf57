// How one service port looks in the table: almost entirely as elements of the fixed sets and maps.

import type { Bytes } from '../../lib/ip.ts'
import { cidrEnd, mergeCidrs } from '../../lib/ip.ts'
import type { Backend, Frontend, NodeView, ServicePortView, Verdict } from '../../model/types.ts'
import { addressField, integerField, portField, protocolField } from '../../state/nftables/fields.ts'
import type { Fragment, SharedRule } from '../../state/nftables/fragment.ts'
import type { Element, NftSet } from '../../state/nftables/types.ts'
import { planAffinity } from './affinity.ts'
import { pickRule } from './pick.ts'
import { type Schema, schemaFor } from './schema.ts'

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

export function planService(node: NodeView, port: ServicePortView): Fragment {
  const schema = schemaFor(node.family)
  const elements = new Elements()
  const sharedRules = new Map<string, SharedRule>()
  for (const frontend of port.frontends) {
    const key = frontendKey(frontend)
    planVerdicts(schema, frontend, { key, elements })
    planSources(schema, frontend, { key, elements })
    for (const shared of planLists(node, frontend, { key, elements })) sharedRules.set(shared.set.name, shared)
  }
  for (const backend of port.backends) planHairpin(schema, port, { backend, elements })
  const affinity = planAffinity(node, port, elements)
  return { ...affinity, sharedRules: [...sharedRules.values()], elements: elements.list() }
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

interface Target {
  readonly key: Bytes
  readonly elements: Elements
}

function planVerdicts(schema: Schema, frontend: Frontend, { key, elements }: Target): void {
  const sets = setsOf(frontend)
  if (frontend.kind === 'clusterIP') elements.add(schema.clusterIps, { key: addressField(frontend.address!) })
  if (mainVerdict(frontend).kind === 'to') {
    elements.add(schema[isSplit(frontend) ? sets.servedLocally : sets.served], { key })
  }
  const others = frontend.fromOthers.verdict
  if (others.kind === 'reject') elements.add(schema[sets.reject], { key })
  if (others.kind === 'drop') elements.add(schema[sets.drop], { key })
  // Cluster IPs are masqueraded by a rule of their own, which looks at where the packet comes from.
  const always = frontend.kind !== 'clusterIP' && frontend.fromPods.masquerade && frontend.fromOthers.masquerade
  if (always && others.kind === 'to') elements.add(schema[sets.masquerade], { key })
}

function planSources(schema: Schema, frontend: Frontend, { key, elements }: Target): void {
  if (frontend.allowedSources === undefined) return
  elements.add(schema.firewallIps, { key })
  for (const cidr of mergeCidrs(frontend.allowedSources)) {
    elements.add(schema.firewallAllowed, { key: key + cidr.network, keyEnd: key + cidrEnd(cidr) })
  }
}

function planLists(node: NodeView, frontend: Frontend, target: Target): SharedRule[] {
  const schema = schemaFor(node.family)
  const sets = setsOf(frontend)
  const shared: SharedRule[] = []
  const plan = (verdict: Verdict, endpoints: NftSet, list: 'main' | 'local') => {
    if (verdict.kind !== 'to') return
    const pick = pickRule(node.family, { frontends: sets, list, count: verdict.backends.length })
    shared.push(pick)
    target.elements.add(pick.set, { key: target.key })
    for (const [slot, backend] of verdict.backends.entries()) {
      target.elements.add(endpoints, { key: target.key + integerField(slot), data: endpointData(backend) })
    }
  }
  plan(mainVerdict(frontend), schema[sets.endpoints], 'main')
  if (isSplit(frontend)) plan(frontend.fromOthers.verdict, schema[sets.localEndpoints], 'local')
  return shared
}

export function endpointData(backend: Backend): Bytes {
  return addressField(backend.ip) + portField(backend.port)
}

function planHairpin(
  schema: Schema,
  port: ServicePortView,
  { backend, elements }: { backend: Backend; elements: Elements },
): void {
  if (!backend.isLocal) return
  const ip = addressField(backend.ip)
  elements.add(schema.hairpin, { key: ip + ip + protocolField(port.protocol) + portField(backend.port) })
}
