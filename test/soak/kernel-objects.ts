// How many objects of each kind a node's kernel holds.

import type { NetworkNamespace } from '../../packages/sandbox/src/netns/network-namespace.ts'
import type { ApiJson } from '../sandbox/support/api-access.ts'
import type { Cluster } from './cluster.ts'
import type { SoakMode } from './options.ts'

export async function kernelObjects(
  cluster: Cluster,
  netns: NetworkNamespace,
  mode: SoakMode,
): Promise<Record<string, number>> {
  const ruleset = JSON.parse(await cluster.run(netns, ['nft', '-j', 'list', 'ruleset']))
  const addresses = await cluster.run(netns, ['ip', '-4', '-o', 'address'])
  const servers = await cluster.run(netns, ['sh', '-c', '[ ! -e /proc/net/ip_vs ] || ipvsadm -Ln'])
  const conntrack = await cluster.run(netns, ['cat', '/proc/sys/net/netfilter/nf_conntrack_count'])
  return {
    ...countRuleset(ruleset, mode),
    addresses: lines(addresses),
    ...(servers === '' ? {} : countServers(servers)),
    conntrack: Number(conntrack),
  }
}

/**
 * What is the mode's. Chains that the kernel or iptables have of their own come with a change of the mode and go with a
 * flush. Elements that come and go with clients, as those of affinity do, are not counted.
 */
function countRuleset({ nftables }: ApiJson, mode: SoakMode): Record<string, number> {
  const isOurs = ({ table, chain }: { table: string; chain: string }) =>
    mode === 'iptables' ? chain.startsWith('KUBE-') : table.startsWith('kube-proxy')
  const counts = { chains: 0, rules: 0, sets: 0, elements: 0 }
  for (const { chain, rule, set, map } of nftables) {
    const bag = set ?? map
    if (chain !== undefined && isOurs({ table: chain.table, chain: chain.name })) counts.chains++
    if (rule !== undefined && isOurs(rule)) counts.rules++
    if (bag === undefined || !isOurs({ table: bag.table, chain: '' })) continue
    counts.sets++
    if (!(bag.flags ?? []).includes('timeout')) counts.elements += bag.elem?.length ?? 0
  }
  return counts
}

/** Backends without weight are on their way out: they stay while they have connections. */
function countServers(listing: string): Record<string, number> {
  const backends = listing.split('\n').filter((line) => /^ +-> \d/.test(line))
  const draining = backends.filter((line) => /^ +-> \S+ +\S+ +0 /.test(line))
  return {
    'ipvs servers': listing.split('\n').filter((line) => /^(TCP|UDP|SCTP) /.test(line)).length,
    'ipvs backends': backends.length - draining.length,
    'ipvs draining': draining.length,
  }
}

function lines(text: string): number {
  return text.split('\n').filter((line) => line !== '').length
}
