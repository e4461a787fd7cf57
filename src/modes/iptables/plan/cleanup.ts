// Removing all that kube-proxy, of any age and with rules of iptables, left in a machine.

import { isBuiltIn } from '../../../iptables/format.ts'
import type { Op } from '../../../iptables/ops.ts'
import { targetOf } from '../../../iptables/same.ts'
import type { Chains, TableName, Tables } from '../../../iptables/types.ts'
import { CHAINS, isServiceChain } from './names.ts'

/**
 * Chains by table: ours, then those of older versions and of kube-proxy's other modes. KUBE-FIREWALL of the filter table is
 * kubelet's and stays.
 */
const OURS: Readonly<Record<TableName, ReadonlySet<string>>> = {
  mangle: new Set([CHAINS.canary]),
  filter: new Set([
    CHAINS.services,
    CHAINS.externalServices,
    CHAINS.forward,
    CHAINS.nodePorts,
    CHAINS.proxyFirewall,
    CHAINS.canary,
    // userspace
    'KUBE-NODEPORT-NON-LOCAL',
    // ipvs
    'KUBE-NODE-PORT',
    'KUBE-SOURCE-RANGES-FIREWALL',
    'KUBE-IPVS-FILTER',
    'KUBE-IPVS-OUT-FILTER',
  ]),
  nat: new Set([
    CHAINS.services,
    CHAINS.nodePorts,
    CHAINS.postrouting,
    CHAINS.markMasquerade,
    CHAINS.canary,
    // before 1.26
    'KUBE-MARK-DROP',
    // userspace
    'KUBE-PORTALS-CONTAINER',
    'KUBE-PORTALS-HOST',
    'KUBE-NODEPORT-CONTAINER',
    'KUBE-NODEPORT-HOST',
    // ipvs
    'KUBE-NODE-PORT',
    'KUBE-LOAD-BALANCER',
    'KUBE-FIREWALL',
  ]),
}

export interface Cleanup {
  readonly ops: readonly Op[]
  /** Chains that stay because rules of other programs use them: `nat KUBE-MARK-MASQ`. */
  readonly kept: readonly string[]
}

/** What removes it from the tables, and leaves everything else. */
export function planCleanup(tables: Tables): Cleanup {
  const ops: Op[] = []
  const kept: string[] = []
  for (const [table, chains] of tables) {
    if (OURS[table] === undefined) continue
    const found = [...chains.keys()].filter((chain) => isOurs(table, chain))
    const used = usedByOthers(table, chains)
    for (const [chain, rules] of chains) {
      if (!isBuiltIn(chain)) continue
      for (const rule of rules) {
        if (!isOurs(table, targetOf(rule) ?? '')) continue
        ops.push({ op: 'deleteRule', table, chain, rule, owner: undefined })
      }
    }
    for (const chain of found) {
      if (used.has(chain)) kept.push(`${table} ${chain}`)
      else ops.push({ op: 'deleteChain', table, chain })
    }
  }
  return { ops, kept }
}

function isOurs(table: TableName, chain: string): boolean {
  return OURS[table].has(chain) || (table === 'nat' && isServiceChain(chain))
}

/** Chains of ours to which somebody else's chains jump, and the chains that those need in turn. */
function usedByOthers(table: TableName, chains: Chains): Set<string> {
  const used = new Set<string>()
  const use = (chain: string): void => {
    if (!isOurs(table, chain) || used.has(chain)) return
    used.add(chain)
    for (const rule of chains.get(chain) ?? []) use(targetOf(rule) ?? '')
  }
  for (const [chain, rules] of chains) {
    if (isBuiltIn(chain) || isOurs(table, chain)) continue
    for (const rule of rules) use(targetOf(rule) ?? '')
  }
  return used
}
