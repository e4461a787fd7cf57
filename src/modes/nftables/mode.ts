// The descriptor of the nftables mode.

import { BALANCES } from '../../model/balance.ts'
import type { Mode } from '../contract.ts'

export const nftablesMode: Mode = {
  name: 'nftables',
  defaultNodePortAddresses: ['primary'],
  changesAreCheap: true,
  restartFields: [],
  metrics: [
    'conntrackDuration',
    'conntrackDeleted',
    'syncFullDuration',
    'syncPartialDuration',
    'nftablesSyncFailures',
    'nftablesCleanupFailures',
  ],
  balances: BALANCES,
  choosesAtRandom: true,
  retries: 'kernel',
  translates: 'by rules',
  serviceLinks: [],
  semantics: {
    guards: 'cluster IPs',
    hairpin: 'of this node',
    unallocated: 'drop',
    localhostNodePorts: 'by listeners',
    refusesNode: true,
    refusesNodePorts: 'where they are open',
    sourceRanges: 'first',
    protocols: ['TCP', 'UDP', 'SCTP'],
    canLimit: true,
    pings: 'by rules',
  },
  load: async () => (await import('./machine.ts')).nftablesMachine,
}
