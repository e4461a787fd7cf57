// The descriptor of the ipvs mode.

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
  weighs: true,
  retries: 'behind IPVS',
  serviceLinks: [LINK],
  load: async () => (await import('./machine.ts')).ipvsMachine,
}
