// What the nftables mode finds on this machine when it only looks.

import type { TableOutline } from '../../nftables/types.ts'
import type { LookOptions, ModeOutlook } from '../contract.ts'
import { adviseOnTables } from '../advise-on-tables.ts'
import { probeRules, readOutlines } from '../../nftables/probe.ts'
import { SETS, TABLE } from './plan/names.ts'

export function lookForNftables(): ModeOutlook {
  return { ...adviseOnTables(probeRules()), uses: ['netlink, no programs'] }
}

export function readPresentTables({ families }: LookOptions): string[] {
  return readOutlines(TABLE, families).map(describeTable)
}

/** kube-proxy's table has the same name, but none of our sets. */
function describeTable({ family, name, sets, chains }: TableOutline): string {
  const writer = sets.has(SETS.services) ? 'kube-proxy-ts' : 'kube-proxy'
  return `table ${family} ${name}, as ${writer} writes it, with ${chains.size} chains`
}
