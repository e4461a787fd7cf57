// Limits of connections: each service port that asks for them has a chain, which the first packets of connections to it pass before they
// are translated. A map leads from its frontends to that chain. It is there, with the rule that asks it, while a service has limits.
//
// The client's own limits come first: what one client has too much of does not count for the others.

import type { Family } from '../../lib/ip.ts'
import type { Limits } from '../../model/limits.ts'
import type { ServicePortView } from '../../model/types.ts'
import type { Fragment, SharedRule } from '../../nftables/fragment.ts'
import * as nft from '../../nftables/language.ts'
import { makeSet } from '../../nftables/make-set.ts'
import type { Chain, NftSet, Rule } from '../../nftables/types.ts'
import { type Elements, frontendKey } from './frontend.ts'
import { chain, matchKeys } from './match.ts'
import { servicePortBaseName } from './service-port-name.ts'
import { addressType, NODE_PORT_KEY, serviceKey } from './schema.ts'

/** The chains of a mode that lead its frontends, and its node ports, to their limits. */
export interface LimitedChains {
  readonly services: string
  readonly nodePorts: string
  /** What says that a packet may be to a node port, where the chain does not know. */
  readonly nodePortGuard?: readonly nft.Piece[]
}

export type LimitsPart = Pick<Fragment, 'sets' | 'chains' | 'sharedRules'>

export const NO_LIMITS: LimitsPart = { sets: [], chains: [], sharedRules: [] }

export const LIMIT_MAPS = { services: 'limited-services', nodePorts: 'limited-nodeports' } as const

/** Clients that one service port remembers at most, in each of its sets. Those for which there is no room have no limit of their own. */
const MOST_CLIENTS = 65_535
/** After that long without a packet, a client may begin as many connections as one that never came. */
const RATE_SECONDS = 2

const PREFIXES = {
  limit: 'limit-',
  over: 'over-limit-',
  rates: 'client-rates-',
  open: 'client-connections-',
} as const

/** Whether a chain, or a set, belongs to the limits of a service port. */
export function isOfLimits(name: string): boolean {
  return Object.values(PREFIXES).some((prefix) => name.startsWith(prefix)) && name.includes('/')
}

/** The chain of what was over a limit of the port. Its rule counts. */
export function overChain(port: ServicePortView): string {
  return PREFIXES.over + servicePortBaseName(port)
}

/** What the chains of ports have counted, by the name of the chain. */
export function countOverLimit(chains: Iterable<Chain>): Map<string, number> {
  const counts = new Map<string, number>()
  for (const { name, rules } of chains) {
    if (!name.startsWith(PREFIXES.over)) continue
    const counter = rules[0]?.expressions.find((each) => each.kind === 'counter')
    if (counter !== undefined) counts.set(name, Number(counter.packets))
  }
  return counts
}

/** `namespace/name:port`, from the name of a port's chain. */
export function servicePortOf(chainName: string): string {
  const [, service = chainName, port = ''] = /-[A-Z2-7]{8}-([^/]+\/[^/]+)\/\w+\/(.*)$/.exec(chainName) ?? []
  return port === '' ? service : `${service}:${port}`
}

export function planLimits(
  family: Family,
  port: ServicePortView,
  { elements, chains }: { readonly elements: Elements; readonly chains: LimitedChains },
): LimitsPart {
  const limits = port.frontends[0]?.limits
  if (limits === undefined) return NO_LIMITS
  const base = servicePortBaseName(port)
  const name = PREFIXES.limit + base
  const sharedRules = new Set<SharedRule>()
  for (const frontend of port.frontends) {
    if (frontend.fromNode.verdict.kind !== 'to') continue
    const shared = sharedRule(family, frontend.kind === 'nodePort' ? 'nodePorts' : 'services', chains)
    elements.add(shared.set, { key: frontendKey(frontend), verdict: { code: 'jump', chain: name } })
    sharedRules.add(shared)
  }
  if (sharedRules.size === 0) return NO_LIMITS
  const { sets, rules } = planChecks(family, limits, { base, over: overChain(port) })
  return {
    sets,
    chains: [chain(overChain(port), [refusal(family, port, limits)]), chain(name, rules)],
    sharedRules: [...sharedRules],
  }
}

function planChecks(family: Family, limits: Limits, { base, over }: { base: string; over: string }) {
  const { open, openPerClient, perSecond, perSecondPerClient } = limits
  const client = nft.sourceAddress(family)
  const sets: NftSet[] = []
  const rules: Rule[] = []
  const clients = (name: string, options: Partial<NftSet> = {}) => {
    sets.push(makeSet(name, [addressType(family)], { dynamic: true, size: MOST_CLIENTS, ...options }))
    return name
  }
  const refuse = (isOver: nft.Piece) => rules.push(nft.rule([isOver, nft.goto(over)]))
  if (perSecondPerClient !== undefined) {
    const rate = { perSecond: perSecondPerClient, seconds: RATE_SECONDS }
    refuse(nft.isOverRateOf(clients(PREFIXES.rates + base), client, rate))
  }
  if (openPerClient !== undefined) {
    refuse(nft.isOverOpenOf(clients(PREFIXES.open + base, { timeless: true }), client, openPerClient))
  }
  if (perSecond !== undefined) refuse(nft.isOverRate(perSecond, perSecond))
  if (open !== undefined) refuse(nft.isOverOpen(open))
  return { sets, rules }
}

/** By a reset where there is one: of ICMP errors, the kernel sends a client one in a second. */
function refusal(family: Family, { protocol }: ServicePortView, { over }: Limits): Rule {
  if (over === 'drop') return nft.rule([nft.counter, nft.drop])
  if (protocol !== 'TCP') return nft.rule([nft.counter, nft.reject(family)])
  return nft.rule([nft.isProtocol('TCP'), nft.counter, nft.rejectWithReset])
}

const sharedRules = new Map<string, SharedRule>()

function sharedRule(family: Family, kind: keyof typeof LIMIT_MAPS, chains: LimitedChains): SharedRule {
  const guard = kind === 'nodePorts' ? (chains.nodePortGuard ?? []) : []
  const id = [family, kind, chains[kind], ...guard.map(({ text }) => text)].join(' ')
  let shared = sharedRules.get(id)
  if (shared === undefined) {
    const { service, nodePort } = matchKeys(family)
    const byNodePort = kind === 'nodePorts'
    const set = makeSet(LIMIT_MAPS[kind], byNodePort ? NODE_PORT_KEY : serviceKey(family), { data: 'verdict' })
    const rule = nft.rule([...guard, nft.verdictFrom(byNodePort ? nodePort : service, set.name)])
    sharedRules.set(id, (shared = { set, chain: chains[kind], rule, place: 'first' }))
  }
  return shared
}
