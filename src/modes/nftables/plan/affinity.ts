// Session affinity: each service port that asks for it has a map from clients to endpoints, filled by packets.
//
// Knowing a client is one lookup, whatever the number of endpoints. The map is shared by all frontends of the service
// port, as in kube-proxy, but the lists of Cluster and Local policy have one each: a client must not be sent to a remote
// endpoint just because it got it through a frontend that may use it.

import type { Family } from '../../../lib/ip.ts'
import type { BackendList } from '../../../model/backend-list.ts'
import type { Frontend, NodeView, Policy, ServicePortView } from '../../../model/types.ts'
import type { Fragment, DynamicMap, SharedRule } from '../../../nftables/fragment.ts'
import * as nft from '../../../nftables/language.ts'
import type { Chain, Jump, NftSet } from '../../../nftables/types.ts'
import { type Elements, endpointData, frontendKey, mainVerdict } from '../../../table-sync/plan/frontend.ts'
import { chain, fromPods } from '../../../table-sync/plan/match.ts'
import { type AffinityNames, affinityNames } from './names.ts'
import { affinityMap, schemaFor } from './schema.ts'
import { setsOf } from './frontend.ts'
import { recordKey, recordRule } from './record.ts'

type AffinityPart = Pick<Fragment, 'sets' | 'chains' | 'dynamicMaps' | 'sharedRules'>

const NO_AFFINITY: AffinityPart = { sets: [], chains: [], dynamicMaps: [], sharedRules: [] }

export function planAffinity(node: NodeView, port: ServicePortView, elements: Elements): AffinityPart {
  const seconds = port.frontends[0]?.affinitySeconds
  if (seconds === undefined) return NO_AFFINITY
  const lists = Object.entries(port.lists) as [Policy, BackendList][]
  if (lists.length === 0) return NO_AFFINITY

  const names = affinityNames(port)
  const sharedRules = new Set<SharedRule>()
  for (const frontend of port.frontends) planElements(node, frontend, { names, elements, sharedRules })
  const dynamicMaps: DynamicMap[] = []
  const chains: Chain[] = []
  for (const [policy, backends] of lists) {
    const set = affinityMap(node.family, mapName(names, policy))
    dynamicMaps.push({ set, allowedData: backends.allRecords().map((_, i) => endpointData(backends, i)) })
    chains.push(...listChains(node.family, port, { names, policy, set, seconds }))
  }
  if (lists.length === 2) chains.push(externalChain(node, names))
  return { sets: dynamicMaps.map(({ set }) => set), chains, dynamicMaps, sharedRules: [...sharedRules] }
}

function planElements(
  node: NodeView,
  frontend: Frontend,
  { names, elements, sharedRules }: { names: AffinityNames; elements: Elements; sharedRules: Set<SharedRule> },
): void {
  const main = mainVerdict(frontend)
  if (main.kind !== 'to') return
  const schema = schemaFor(node.family)
  const sets = setsOf(frontend)
  const key = frontendKey(frontend)
  const put = (set: NftSet, verdict: Jump) => elements.add(set, { key, verdict })
  const localToo = frontend.isSplit && frontend.fromOthers.verdict.kind === 'to'
  put(schema[sets.stick], { code: 'jump', chain: stickChain(names, main.policy) })
  if (localToo) put(schema[sets.stickLocal], { code: 'jump', chain: names.stickLocal })
  const record = recordRule(node.family, frontend)
  const recorder = localToo ? names.recordExternal : recordChain(names, main.policy)
  elements.add(record.set, { key: recordKey(frontend), verdict: { code: 'goto', chain: recorder } })
  sharedRules.add(record)
}

interface List {
  readonly names: AffinityNames
  readonly policy: Policy
  readonly set: NftSet
  readonly seconds: number
}

function listChains(family: Family, port: ServicePortView, { names, policy, set, seconds }: List): Chain[] {
  const client = nft.sourceAddress(family)
  const endpoint = [nft.destinationAddress(family), nft.destinationPort]
  return [
    chain(stickChain(names, policy), [
      nft.rule([nft.isProtocol(port.protocol), nft.dnatTo(family, [client], set.name)]),
    ]),
    // A packet that is sent again goes where the first one went, and that may be gone: only the first one says what was chosen.
    chain(recordChain(names, policy), [
      nft.rule([nft.isUnconfirmed, nft.updateMap(set.name, { key: client, value: endpoint, seconds })]),
    ]),
  ]
}

/** The same distinction by source as the services-local chain makes. */
function externalChain(node: NodeView, names: AffinityNames): Chain {
  const isPod = fromPods(node, true)
  return chain(names.recordExternal, [
    ...(isPod === undefined ? [] : [nft.rule([isPod, nft.goto(names.recordCluster)])]),
    nft.rule([nft.isLocalAddress('saddr'), nft.goto(names.recordCluster)]),
    nft.rule([nft.goto(names.recordLocal)]),
  ])
}

function mapName(names: AffinityNames, policy: Policy): string {
  return policy === 'Cluster' ? names.clusterMap : names.localMap
}

function stickChain(names: AffinityNames, policy: Policy): string {
  return policy === 'Cluster' ? names.stickCluster : names.stickLocal
}

function recordChain(names: AffinityNames, policy: Policy): string {
  return policy === 'Cluster' ? names.recordCluster : names.recordLocal
}
