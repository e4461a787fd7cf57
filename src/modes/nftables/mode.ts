// The descriptor of the nftables mode.

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
  weighs: false,
  retries: 'kernel',
  serviceLinks: [],
  load: async () => (await import('./machine.ts')).nftablesMachine,
}
