// How one service port looks in the table: almost entirely as elements of the fixed sets and maps.

import { type Bytes, type Family, asBytes } from '../../../lib/ip.ts'
import { atOnce, type Steps } from '../../../lib/steps.ts'
import type { BackendList } from '../../../model/backend-list.ts'
import type { Frontend, NodeView, ServicePortView, Verdict } from '../../../model/types.ts'
import { sameFrontend } from '../../../model/frontends.ts'
import { integerField } from '../../../nftables/fields.ts'
import type { Fragment, SharedRule } from '../../../nftables/fragment.ts'
import type { NftSet } from '../../../nftables/types.ts'
import {
  Elements,
  endpointData,
  frontendKey,
  mainVerdict,
  planClusterIp,
  planHairpins,
  planRefusals,
} from '../../../table-sync/plan/frontend.ts'
import { inOrder, type Places } from '../../../table-sync/places.ts'
import type { PlanContext } from '../../../table-sync/table-planner.ts'
import { firewallCheckRule } from '../../../table-sync/plan/guards.ts'
import { NO_LIMITS, planLimits } from '../../../table-sync/plan/limits.ts'
import { planPing } from '../../../table-sync/plan/ping.ts'
import { planSourceRules, planSources } from '../../../table-sync/plan/sources.ts'
import { planAffinity } from './affinity.ts'
import { pickRule } from './pick.ts'
import { setsOf } from './frontend.ts'
import { planRefusedLocalhost } from './localhost.ts'
import { CHAINS } from './names.ts'
import { type Schema, schemaFor } from './schema.ts'

export function planFragment(node: NodeView, port: ServicePortView, context?: PlanContext): Fragment {
  return atOnce(planningFragment(node, port, context))
}

/** Places that are planned in one step: some ten milliseconds. */
const PLACES_OF_A_STEP = 20_000

export function* planningFragment(node: NodeView, port: ServicePortView, context: PlanContext = {}): Steps<Fragment> {
  const schema = schemaFor(node.family)
  const elements = new Elements()
  const sharedRules = new Set<SharedRule>()
  const { places, unlike } = context
  const differences = placesThatDiffer()
  const others = unlike && new Map(unlike.frontends.map((frontend) => [frontendKey(frontend), frontend]))
  let planned = 0
  for (const frontend of port.frontends) {
    const key = frontendKey(frontend)
    const other = others?.get(key)
    if (other !== undefined && sameFrontend(frontend, other)) {
      planRules(node, frontend, sharedRules)
      continue
    }
    planVerdicts(schema, frontend, { key, elements })
    planPing(node, frontend, elements)
    planSources(schema, frontend, { elements, sharedRules })
    if (frontend.allowedSources !== undefined) sharedRules.add(FIREWALL_RULES[node.family])
    planned += planLists(node, frontend, { key, elements, places, other, differences, sharedRules })
    if (planned < PLACES_OF_A_STEP) continue
    planned = 0
    yield
  }
  planHairpins(schema.hairpin, port, elements)
  planRefusedLocalhost(node, port, elements)
  const { sets, chains, dynamicMaps, sharedRules: ofAffinity } = planAffinity(node, port, elements)
  for (const shared of ofAffinity) sharedRules.add(shared)
  const limits = planLimits(node.family, port, { elements, chains: LIMITED_CHAINS })
  for (const shared of limits.sharedRules) sharedRules.add(shared)
  // No spread: V8 would make a shape of its own for each of these, by the hundred thousand.
  if (limits === NO_LIMITS) {
    return { sets, chains, dynamicMaps, sharedRules: [...sharedRules], elements: elements.list() }
  }
  return {
    sets: [...sets, ...limits.sets],
    chains: [...chains, ...limits.chains],
    dynamicMaps,
    sharedRules: [...sharedRules],
    elements: elements.list(),
  }
}

/** For a frontend that is the same on both sides of a change: the rules that it needs, and no elements. */
function planRules(node: NodeView, frontend: Frontend, sharedRules: Set<SharedRule>): void {
  const sets = setsOf(frontend)
  if (frontend.allowedSources !== undefined) sharedRules.add(FIREWALL_RULES[node.family])
  planSourceRules(frontend, sharedRules)
  for (const { list, backends } of listsOf(node.family, frontend)) {
    sharedRules.add(
      pickRule(node.family, { frontends: sets, list, count: inOrder(backends).length, balance: backends.balance }),
    )
  }
}

/** Only those pass there that need more than a choice. */
const LIMITED_CHAINS = { services: CHAINS.specialServices, nodePorts: CHAINS.specialNodePorts } as const

/** There while a service has source ranges, so that other clusters do not pay for it. */
const FIREWALL_RULES = { 4: firewallRule(4), 6: firewallRule(6) } as const

function firewallRule(family: Family): SharedRule {
  return { set: schemaFor(family).firewallIps, chain: CHAINS.firewallCheck, rule: firewallCheckRule(family) }
}

interface Target {
  readonly key: Bytes
  readonly elements: Elements
}

interface ListTarget extends Target {
  readonly places: Places | undefined
  /** The frontend on the other side of the change. */
  readonly other: Frontend | undefined
  readonly differences: ReturnType<typeof placesThatDiffer>
  readonly sharedRules: Set<SharedRule>
}

/** One of the two lists that a frontend may have: for all clients, or for those from outside where the policy is Local. */
export interface FrontendList {
  readonly list: 'main' | 'local'
  /** The map from places to backends. */
  readonly set: NftSet
  readonly backends: BackendList
}

export function listsOf(family: Family, frontend: Frontend): readonly FrontendList[] {
  const schema = schemaFor(family)
  const sets = setsOf(frontend)
  const main = listOf('main', mainVerdict(frontend), schema[sets.endpoints])
  return frontend.isSplit
    ? [...main, ...listOf('local', frontend.fromOthers.verdict, schema[sets.localEndpoints])]
    : main
}

function listOf(list: FrontendList['list'], verdict: Verdict, set: NftSet): readonly FrontendList[] {
  return verdict.kind === 'to' ? [{ list, set, backends: verdict.backends }] : []
}

/** The key under which a map has the backend of a place. */
export function placeKey(frontend: Bytes, place: number): Bytes {
  return asBytes(frontend + integerField(place))
}

function planVerdicts(schema: Schema, frontend: Frontend, { key, elements }: Target): void {
  const sets = setsOf(frontend)
  planClusterIp(schema, frontend, elements)
  planRefusals(schema, frontend, elements)
  if (mainVerdict(frontend).kind !== 'to') return
  // In all sets that it belongs to, not in one of them: a packet that is under way while it moves from one to another finds it.
  elements.add(schema[sets.served], { key })
  if (isSpecial(frontend)) elements.add(schema[sets.special], { key })
  if (frontend.isSplit) elements.add(schema[sets.servedLocally], { key })
  if (isMasqueraded(frontend)) elements.add(schema.masqueradeServices, { key })
}

/** Whether its clients need more than a choice among all endpoints. Node ports that do not are masqueraded by the rule that finds them. */
function isSpecial(frontend: Frontend): boolean {
  const { isSplit, affinitySeconds, limits } = frontend
  return isSplit || affinitySeconds !== undefined || limits !== undefined || isMasqueraded(frontend)
}

/** Whether it says so in a set. Cluster IPs are masqueraded by a rule of their own, which looks at where the packet comes from. */
function isMasqueraded({ kind, isSplit }: Frontend): boolean {
  return kind !== 'clusterIP' && kind !== 'nodePort' && !isSplit
}

/** The places at which a list has another backend than the list on the other side of the change. */
function placesThatDiffer(): (placed: BackendList, other: BackendList | undefined) => readonly number[] {
  let last: readonly [placed: unknown, other: unknown, places: readonly number[]] | undefined
  return (placed, other) => {
    // Most frontends have the same list.
    if (last?.[0] === placed && last[1] === other) return last[2]
    const places = placed.placesUnlike(other)
    last = [placed, other, places]
    return places
  }
}

/** Returns how many places it has planned. */
function planLists(node: NodeView, frontend: Frontend, target: ListTarget): number {
  const { key, elements, places, other, differences, sharedRules } = target
  const sets = setsOf(frontend)
  const placesOf = (list: BackendList | undefined) => list && (places?.of(list) ?? inOrder(list))
  const others = other && listsOf(node.family, other)
  let planned = 0
  for (const { list, set, backends } of listsOf(node.family, frontend)) {
    const placed = placesOf(backends)!
    const pick = pickRule(node.family, { frontends: sets, list, count: placed.length, balance: backends.balance })
    sharedRules.add(pick)
    elements.add(pick.set, { key })
    for (const place of differences(placed, placesOf(others?.find((each) => each.list === list)?.backends))) {
      elements.add(set, { key: placeKey(key, place), data: endpointData(placed, place) })
      planned++
    }
  }
  return planned
}
