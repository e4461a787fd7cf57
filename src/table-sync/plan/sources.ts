// Source ranges (loadBalancerSourceRanges). The kernel does one hash lookup for each prefix length in use: it masks the client's
// address and looks for that range. An interval set would need one lookup, but the cost of changing it grows faster than its size:
// docs/adr/0013-source-ranges-by-prefix.md.

import { type Bytes, type Cidr, type Family, mergeCidrs, asBytes } from '../../lib/ip.ts'
import type { Frontend } from '../../model/types.ts'
import type { SharedRule } from '../../nftables/fragment.ts'
import * as nft from '../../nftables/language.ts'
import { makeSet } from '../../nftables/make-set.ts'
import { type Elements, frontendKey } from './frontend.ts'
import { matchKeys } from './match.ts'
import { GUARD_CHAINS } from './names.ts'
import { addressType, type GuardSchema, serviceKey } from './schema.ts'

interface Target {
  readonly elements: Elements
  readonly sharedRules: Set<SharedRule>
}

/** The sources that may connect. */
export function planSources(schema: GuardSchema, frontend: Frontend, { elements, sharedRules }: Target): void {
  if (frontend.allowedSources === undefined) return
  const key = frontendKey(frontend)
  elements.add(schema.firewallIps, { key })
  for (const { family, prefix, networks } of byPrefix(frontend.allowedSources)) {
    const shared = sourceRule(family, prefix)
    sharedRules.add(shared)
    for (const network of networks) elements.add(shared.set, { key: asBytes(key + network) })
  }
}

/** The rules of planSources() alone. */
export function planSourceRules({ allowedSources }: Frontend, sharedRules: Set<SharedRule>): void {
  if (allowedSources === undefined) return
  for (const { family, prefix } of byPrefix(allowedSources)) sharedRules.add(sourceRule(family, prefix))
}

interface RangesOfPrefix {
  readonly family: Family
  readonly prefix: number
  readonly networks: Bytes[]
}

/** Cached: all frontends of a service share one list, and it may be long. */
const sorted = new WeakMap<readonly Cidr[], readonly RangesOfPrefix[]>()

function byPrefix(sources: readonly Cidr[]): readonly RangesOfPrefix[] {
  const known = sorted.get(sources)
  if (known !== undefined) return known
  const groups = new Map<number, RangesOfPrefix>()
  for (const { family, prefix, network } of mergeCidrs(sources)) {
    const group = groups.get(prefix)
    if (group === undefined) groups.set(prefix, { family, prefix, networks: [network] })
    else group.networks.push(network)
  }
  const list = [...groups.values()]
  sorted.set(sources, list)
  return list
}

const SET_NAME = 'firewall-sources-'

/** Whether a set of this name holds source ranges. */
export function isSourceSetName(name: string): boolean {
  return name.startsWith(SET_NAME)
}

const rules = new Map<string, SharedRule>()

/** The rule that accepts clients whose range of this prefix length is in the set. Made once for each length. */
function sourceRule(family: Family, prefix: number): SharedRule {
  const id = `${family} ${prefix}`
  let shared = rules.get(id)
  if (shared === undefined) {
    const set = makeSet(`${SET_NAME}${prefix}`, [...serviceKey(family), addressType(family)])
    const key = [...matchKeys(family).service, nft.sourceNetwork(family, prefix)]
    const rule = nft.rule([nft.isIn(key, set.name), nft.goBack])
    rules.set(id, (shared = { set, chain: GUARD_CHAINS.firewallSources, rule, place: 'first' }))
  }
  return shared
}
