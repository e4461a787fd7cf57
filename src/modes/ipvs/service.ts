// How one service port looks in the table around IPVS: as elements of the fixed sets and maps.

import { type Bytes, cidrEnd, type Family, mergeCidrs } from '../../lib/ip.ts'
import type { Backend, Frontend, NodeView, ServicePortView } from '../../model/types.ts'
import { addressField, integerField, portField, protocolField } from '../../state/nftables/fields.ts'
import type { Fragment, SharedRule } from '../../state/nftables/fragment.ts'
import * as nft from '../../state/nftables/language.ts'
import { Elements, endpointData, frontendKey, makeSet, NODE_PORT_KEY, serviceKey } from '../shared/nft-sets.ts'
import { isLocal, servedVerdict, shortCircuitVerdict } from './frontend.ts'
import { CHAINS, countSetName, SETS } from './names.ts'
import { matchKeys } from './rules.ts'
import { type Schema, schemaFor } from './schema.ts'

export function planFragment(node: NodeView, port: ServicePortView): Fragment {
  const schema = schemaFor(node.family)
  const elements = new Elements()
  const sharedRules = new Map<string, SharedRule>()
  for (const frontend of port.frontends) {
    const key = frontendKey(frontend)
    planAddress(schema, frontend, elements)
    planVerdict(schema, frontend, { key, elements })
    planSources(schema, frontend, { key, elements })
    const shared = planShortCircuit(node, frontend, { key, elements })
    if (shared !== undefined) sharedRules.set(shared.set.name, shared)
  }
  for (const backend of port.backends) planHairpin(schema, port, { backend, elements })
  if (port.healthCheckNodePort !== undefined) {
    elements.add(schema.healthCheckPorts, { key: protocolField('TCP') + portField(port.healthCheckNodePort) })
  }
  return { sets: [], chains: [], learned: [], sharedRules: [...sharedRules.values()], elements: elements.list() }
}

interface Target {
  readonly key: Bytes
  readonly elements: Elements
}

const BY_ADDRESS = {
  served: 'services',
  masquerade: 'masqueradeServices',
  local: 'localServices',
  reject: 'rejectServices',
  drop: 'dropServices',
} as const satisfies Record<string, keyof Schema>

/** Node ports need no guard, so nobody asks whether they are served. */
const BY_NODE_PORT = {
  served: undefined,
  masquerade: 'masqueradeNodePorts',
  local: 'localNodePorts',
  reject: 'rejectNodePorts',
  drop: 'dropNodePorts',
} as const satisfies Record<string, keyof Schema | undefined>

function planAddress(schema: Schema, { kind, address }: Frontend, elements: Elements): void {
  if (address === undefined) return
  const key = addressField(address)
  elements.add(schema.frontendIps, { key })
  if (kind === 'clusterIP') elements.add(schema.clusterIps, { key })
}

function planVerdict(schema: Schema, frontend: Frontend, { key, elements }: Target): void {
  const sets = frontend.kind === 'nodePort' ? BY_NODE_PORT : BY_ADDRESS
  const verdict = servedVerdict(frontend)
  if (verdict.kind === 'to' && sets.served !== undefined) elements.add(schema[sets.served], { key })
  if (verdict.kind === 'reject') elements.add(schema[sets.reject], { key })
  if (verdict.kind === 'drop') elements.add(schema[sets.drop], { key })
  // Cluster IPs are masqueraded by a rule of their own, which looks at where the packet comes from.
  if (frontend.kind === 'clusterIP') return
  if (isLocal(frontend)) elements.add(schema[sets.local], { key })
  else if (frontend.fromOthers.masquerade) elements.add(schema[sets.masquerade], { key })
}

function planSources(schema: Schema, frontend: Frontend, { key, elements }: Target): void {
  if (frontend.allowedSources === undefined) return
  elements.add(schema.firewallIps, { key })
  for (const cidr of mergeCidrs(frontend.allowedSources)) {
    elements.add(schema.firewallAllowed, { key: key + cidr.network, keyEnd: key + cidrEnd(cidr) })
  }
}

function planShortCircuit(node: NodeView, frontend: Frontend, { key, elements }: Target): SharedRule | undefined {
  const verdict = shortCircuitVerdict(frontend)
  if (verdict === undefined) return undefined
  const schema = schemaFor(node.family)
  const kind = frontend.kind === 'nodePort' ? 'nodePort' : 'service'
  const shared = shortCircuitRule(node.family, kind, verdict.backends.length)
  const endpoints = kind === 'nodePort' ? schema.nodePortEndpoints : schema.serviceEndpoints
  elements.add(shared.set, { key })
  for (const [slot, backend] of verdict.backends.entries()) {
    elements.add(endpoints, { key: key + integerField(slot), data: endpointData(backend) })
  }
  return shared
}

const rules = new Map<string, SharedRule>()

/** The rule for all frontends whose short circuit has so many endpoints, made once. */
function shortCircuitRule(family: Family, kind: 'nodePort' | 'service', count: number): SharedRule {
  const id = `${family} ${kind} ${count}`
  let shared = rules.get(id)
  if (shared === undefined) {
    const byNodePort = kind === 'nodePort'
    const chain = byNodePort ? CHAINS.nodePortShortCircuit : CHAINS.serviceShortCircuit
    const key = matchKeys(family)[kind]
    const set = makeSet(countSetName(chain, count), byNodePort ? NODE_PORT_KEY : serviceKey(family))
    const endpoints = byNodePort ? SETS.nodePortEndpoints : SETS.serviceEndpoints
    const rule = nft.rule([nft.isIn(key, set.name), nft.dnatTo(family, [...key, nft.random(count)], endpoints)])
    rules.set(id, (shared = { set, chain, rule }))
  }
  return shared
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
