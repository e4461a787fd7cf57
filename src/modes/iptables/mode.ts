// The descriptor of the iptables mode.

import type { Mode } from '../contract.ts'

export const iptablesMode: Mode = {
  name: 'iptables',
  // It needs no programs, and its packets pass the same hooks. In userspace mode they do not: this process sends them, so
  // rules of the forward hook, which is where network policies are, never see them. That has to be asked for.
  standIn: 'nftables',
  oldStandIn: 'userspace',
  defaultNodePortAddresses: [],
  // Each change runs iptables-restore.
  changesAreCheap: false,
  restartFields: ['iptables', 'conntrack.tcpBeLiberal'],
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
  balances: ['random'],
  choosesAtRandom: true,
  retries: 'kernel',
  translates: 'by rules',
  // A rule for each, as in kube-proxy.
  comparesFrontends: 'one by one',
  serviceLinks: [],
  semantics: {
    guards: 'no addresses',
    hairpin: 'all',
    unallocated: 'untouched',
    localhostNodePorts: 'by rules',
    refusesNode: false,
    refusesNodePorts: 'on every address',
    sourceRanges: 'with endpoints',
    protocols: ['TCP', 'UDP', 'SCTP'],
    canLimit: true,
    pings: 'by rules',
  },
  load: async () => (await import('./machine.ts')).iptablesMachine,
}
