// What stays in the table when kube-proxy takes a node back: it adds to the table that it finds and knows nothing of these.

import type { Op, Table } from '../../../nftables/types.ts'
import { PING_SET } from '../../../table-sync/plan/ping.ts'
import { isOfLimits, LIMIT_MAPS } from '../../../table-sync/plan/limits.ts'
import { isSourceSetName } from '../../../table-sync/plan/sources.ts'
import { splitCountSetName } from '../../../table-sync/plan/place.ts'
import { CHAINS, isRecordSetName, SETS } from './names.ts'

/** Names that kube-proxy has, too, and the same meaning for. */
const SHARED_CHAINS: ReadonlySet<string> = new Set([
  CHAINS.filterInput,
  CHAINS.filterForward,
  CHAINS.filterOutput,
  CHAINS.natPrerouting,
  CHAINS.natOutput,
  CHAINS.natPostrouting,
  CHAINS.services,
  CHAINS.masquerading,
  CHAINS.firewallCheck,
  CHAINS.serviceEndpointsCheck,
  CHAINS.nodePortEndpointsCheck,
  CHAINS.clusterIpsCheck,
])
const SHARED_SETS: ReadonlySet<string> = new Set([SETS.clusterIps, SETS.nodePortIps, SETS.hairpin])

const OWN_CHAINS: ReadonlySet<string> = new Set(Object.values(CHAINS).filter((name) => !SHARED_CHAINS.has(name)))
const OWN_SETS: ReadonlySet<string> = new Set([
  ...Object.values(SETS).filter((name) => !SHARED_SETS.has(name)),
  PING_SET,
  ...Object.values(LIMIT_MAPS),
])

/** The map that kube-proxy leads packets to services with. We have none of this name. */
const OF_KUBE_PROXY = 'service-ips'

/** Whether kube-proxy has taken the table over. */
export function isOfKubeProxy({ sets }: Table): boolean {
  return sets.has(OF_KUBE_PROXY)
}

/** Removes what is ours alone. What kube-proxy's rules use cannot be among it: the kernel would refuse. */
export function planLeftovers({ sets, chains }: Table): Op[] {
  const ownChains = [...chains.keys()].filter(
    (name) => OWN_CHAINS.has(name) || /^(stick|record)-.*\//.test(name) || isOfLimits(name),
  )
  const ownSets = Array.from(sets.values())
    // kube-proxy's sets of clients have such names, too, but are no maps.
    .filter(
      ({ name, data }) =>
        OWN_SETS.has(name) ||
        isOfCount(name) ||
        isRecordSetName(name) ||
        isSourceSetName(name) ||
        isOfLimits(name) ||
        (/^affinity-.*\//.test(name) && data),
    )
    .map(({ name }) => name)
  return [
    ...ownChains.map((name): Op => ({ op: 'flushChain', name })),
    // Before the chains that elements of theirs lead to.
    ...ownSets.map((name): Op => ({ op: 'deleteSet', name })),
    ...ownChains.map((name): Op => ({ op: 'deleteChain', name })),
  ]
}

/** See countSetName(). */
function isOfCount(name: string): boolean {
  return OWN_SETS.has(splitCountSetName(name)?.frontends ?? '')
}
