// The descriptor of the iptables mode.

import type { Mode } from '../contract.ts'

export const iptablesMode: Mode = {
  name: 'iptables',
  standIn: 'userspace',
  defaultNodePortAddresses: [],
  // Each change runs iptables-restore.
  changesAreCheap: false,
  restartFields: ['iptables'],
  metrics: [
    'conntrackDuration',
    'conntrackDeleted',
    'syncFullDuration',
    'syncPartialDuration',
    'iptablesRestoreFailures',
    'iptablesPartialRestoreFailures',
    'iptablesRules',
    'iptablesRulesWritten',
  ],
  serviceLinks: [],
  load: async () => (await import('./machine.ts')).iptablesMachine,
}
