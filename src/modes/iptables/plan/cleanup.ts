// Removing all that kube-proxy, of any age and with rules of iptables, left in a machine.

import { isBuiltIn } from '../../../iptables/format.ts'
import type { Op } from '../../../iptables/ops.ts'
import { sameRule, targetOf } from '../../../iptables/same.ts'
import type { Chains, TableName, Tables } from '../../../iptables/types.ts'
import { BLOCK_MARTIANS } from './base.ts'
import { CHAINS, isServiceChain } from './names.ts'

/**
 * Chains by table: ours, then those of older versions and of kube-proxy's other modes. KUBE-FIREWALL of the filter table is
 * not among them: where there is a kubelet, it is kubelet's.
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
    CHAINS.localnetNote,
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
    CHAINS.ping,
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

/**
 * What removes it from the tables, and leaves everything else. The guard is the rule that makes route_localnet safe: it has to
 * stay where that setting could not be taken back, and with it the note that this is still to be done.
 */
export function planCleanup(tables: Tables, guard: 'remove' | 'keep' = 'remove'): Cleanup {
  const ops: Op[] = []
  const kept: string[] = []
  const ownsFirewall = guard === 'remove' && !isKubeletsFirewall(tables)
  const isOurs: IsOurs = (table, chain) =>
    (OURS[table].has(chain) && !(guard === 'keep' && chain === CHAINS.localnetNote)) ||
    (table === 'nat' && isServiceChain(chain)) ||
    (ownsFirewall && table === 'filter' && chain === CHAINS.kubeletFirewall)
  for (const [table, chains] of tables) {
    if (OURS[table] === undefined) continue
    const found = [...chains.keys()].filter((chain) => isOurs(table, chain))
    const used = usedByOthers(table, chains, isOurs)
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

/** Whether we turned on route_localnet, which was off. */
export function hasLocalnetNote(tables: Tables): boolean {
  return tables.get('filter')?.has(CHAINS.localnetNote) === true
}

type IsOurs = (table: TableName, chain: string) => boolean

/** A running kubelet has its canary; an old one has rules in the chain that we never write. */
function isKubeletsFirewall(tables: Tables): boolean {
  for (const chains of tables.values()) if (chains.has(CHAINS.kubeletCanary)) return true
  const rules = tables.get('filter')?.get(CHAINS.kubeletFirewall) ?? []
  return rules.some((rule) => !sameRule(rule, BLOCK_MARTIANS.rule))
}

/** Chains of ours to which chains of other programs jump, and the chains that those need in turn. */
function usedByOthers(table: TableName, chains: Chains, isOurs: IsOurs): Set<string> {
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
