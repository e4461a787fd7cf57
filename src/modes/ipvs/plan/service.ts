// How one service port looks in the table around IPVS: as elements of the fixed sets and maps.

import { type Bytes, type Family, asBytes } from '../../../lib/ip.ts'
import type { BackendList } from '../../../model/backend-list.ts'
import type { Frontend, NodeView, ServicePortView } from '../../../model/types.ts'
import { addressField, integerField, portField, protocolField } from '../../../nftables/fields.ts'
import type { Fragment, SharedRule } from '../../../nftables/fragment.ts'
import * as nft from '../../../nftables/language.ts'
import {
  Elements,
  endpointData,
  frontendKey,
  planClusterIp,
  planHairpins,
  planRefusals,
} from '../../../table-sync/plan/frontend.ts'
import { inOrder } from '../../../table-sync/places.ts'
import { matchKeys } from '../../../table-sync/plan/match.ts'
import { makeSet } from '../../../nftables/make-set.ts'
import { planSources } from '../../../table-sync/plan/sources.ts'
import { NODE_PORT_KEY, serviceKey } from '../../../table-sync/plan/schema.ts'
import { isLeftAlone, servedVerdict, shortCircuitVerdict } from './frontend.ts'
import { countSetName, placeOf } from '../../../table-sync/plan/place.ts'
import { CHAINS, SETS } from './names.ts'
import { type Schema, schemaFor } from './schema.ts'

export function planFragment(node: NodeView, port: ServicePortView): Fragment {
  const schema = schemaFor(node.family)
  const elements = new Elements()
  const sharedRules = new Set<SharedRule>()
  for (const frontend of port.frontends) {
    const key = frontendKey(frontend)
    planClusterIp(schema, frontend, elements)
    planRefusals(schema, frontend, elements)
    planSources(schema, frontend, { elements, sharedRules })
    planAddress(schema, frontend, { key, elements })
    planMasquerade(schema, frontend, { key, elements })
    const shared = planShortCircuit(node, frontend, { key, elements })
    if (shared !== undefined) sharedRules.add(shared)
  }
  planHairpins(schema.hairpin, port, elements)
  if (port.healthCheckNodePort !== undefined) {
    elements.add(schema.healthCheckPorts, { key: asBytes(protocolField('TCP') + portField(port.healthCheckNodePort)) })
  }
  return { sets: [], chains: [], dynamicMaps: [], sharedRules: [...sharedRules], elements: elements.list() }
}

interface Target {
  readonly key: Bytes
  readonly elements: Elements
}

/** The address, whose other ports are guarded, and this port of it, which is not. */
function planAddress(schema: Schema, frontend: Frontend, { key, elements }: Target): void {
  if (frontend.address === undefined || isLeftAlone(frontend)) return
  elements.add(schema.frontendIps, { key: addressField(frontend.address) })
  if (servedVerdict(frontend).kind === 'to') elements.add(schema.services, { key })
}

/** Cluster IPs are masqueraded by a rule of their own, which looks at where the packet comes from. */
function planMasquerade(schema: Schema, frontend: Frontend, { key, elements }: Target): void {
  if (frontend.kind === 'clusterIP') return
  const byNodePort = frontend.kind === 'nodePort'
  if (frontend.isSplit) elements.add(byNodePort ? schema.localNodePorts : schema.localServices, { key })
  else if (frontend.fromOthers.masquerade) {
    elements.add(byNodePort ? schema.masqueradeNodePorts : schema.masqueradeServices, { key })
  }
}

function planShortCircuit(node: NodeView, frontend: Frontend, { key, elements }: Target): SharedRule | undefined {
  const verdict = shortCircuitVerdict(frontend)
  if (verdict === undefined) return undefined
  const schema = schemaFor(node.family)
  const kind = frontend.kind === 'nodePort' ? 'nodePort' : 'service'
  const backends = inOrder(verdict.backends)
  const shared = shortCircuitRule(node.family, kind, backends)
  const endpoints = kind === 'nodePort' ? schema.nodePortEndpoints : schema.serviceEndpoints
  elements.add(shared.set, { key })
  for (let slot = 0; slot < backends.length; slot++) {
    elements.add(endpoints, { key: asBytes(key + integerField(slot)), data: endpointData(backends, slot) })
  }
  return shared
}

const rules = new Map<string, SharedRule>()

/** The rule for all frontends whose short circuit has so many places, made once. */
function shortCircuitRule(
  family: Family,
  kind: 'nodePort' | 'service',
  { length: count, balance }: BackendList,
): SharedRule {
  const id = `${family} ${kind} ${countSetName('', count, balance)}`
  let shared = rules.get(id)
  if (shared === undefined) {
    const byNodePort = kind === 'nodePort'
    const chain = byNodePort ? CHAINS.nodePortShortCircuit : CHAINS.serviceShortCircuit
    const key = matchKeys(family)[kind]
    const set = makeSet(countSetName(chain, count, balance), byNodePort ? NODE_PORT_KEY : serviceKey(family))
    const endpoints = byNodePort ? SETS.nodePortEndpoints : SETS.serviceEndpoints
    const rule = nft.rule([
      nft.isIn(key, set.name),
      nft.dnatTo(family, [...key, placeOf(family, count, balance)], endpoints),
    ])
    rules.set(id, (shared = { set, chain, rule }))
  }
  return shared
}
