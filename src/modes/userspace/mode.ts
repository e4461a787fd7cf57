// The descriptor of the userspace mode.

import type { Mode } from '../contract.ts'

export const userspaceMode: Mode = {
  name: 'userspace',
  defaultNodePortAddresses: [],
  changesAreCheap: true,
  restartFields: ['userspace'],
  metrics: ['conntrackDuration', 'conntrackDeleted'],
  balances: ['random', 'hash-connection', 'hash-client'],
  choosesAtRandom: false,
  retries: 'mode',
  translates: 'by relaying',
  leavesTo: 'nftables',
  serviceLinks: [],
  semantics: {
    guards: 'cluster IPs',
    hairpin: 'all',
    unallocated: 'drop',
    localhostNodePorts: 'never',
    refusesNode: true,
    refusesNodePorts: 'where they are open',
    sourceRanges: 'first',
    protocols: ['TCP', 'UDP'],
    canLimit: true,
    pings: 'by rules',
  },
  load: async () => (await import('./machine.ts')).userspaceMachine,
}
