// The descriptor of the ipvs mode.

import { BALANCES } from '../../model/balance.ts'
import type { Mode } from '../contract.ts'
import { LINK } from './plan/names.ts'

export const ipvsMode: Mode = {
  name: 'ipvs',
  featureGate: 'KubeProxyIPVS',
  standIn: 'iptables',
  defaultNodePortAddresses: [],
  changesAreCheap: true,
  restartFields: ['ipvs'],
  metrics: ['conntrackDuration', 'conntrackDeleted'],
  balances: BALANCES,
  choosesAtRandom: false,
  retries: 'behind IPVS',
  translates: 'by IPVS',
  serviceLinks: [LINK],
  semantics: {
    guards: 'all addresses',
    hairpin: 'of this node',
    unallocated: 'drop',
    localhostNodePorts: 'never',
    refusesNode: true,
    refusesNodePorts: 'where they are open',
    sourceRanges: 'first',
    protocols: ['TCP', 'UDP', 'SCTP'],
    canLimit: false,
    pings: 'by the kernel',
  },
  load: async () => (await import('./machine.ts')).ipvsMachine,
}
