// What a configuration can say that this program treats otherwise than kube-proxy does. One row each; docs/reference/configuration.md
// shows them, and `kube-proxy check` those that apply.

import { featureEnabled } from '../../config/feature-gates.ts'
import type { ConfigurationFacts } from './facts.ts'

export interface Difference {
  /** The fields that it is about. */
  readonly fields: string
  readonly applies: (configuration: ConfigurationFacts) => boolean
  readonly says: string
}

export const differences: readonly Difference[] = [
  {
    fields: 'mode: userspace',
    applies: ({ config }) => config.mode === 'userspace',
    says: 'kube-proxy dropped the userspace mode in 1.26; here it exists. Network policies do not hold for what it carries.',
  },
  {
    fields: 'mode: ipvs',
    applies: ({ config }) => config.mode === 'ipvs',
    says: 'The rules around IPVS are in the nftables table kube-proxy-ipvs, not in iptables and ipsets.',
  },
  {
    fields: 'mode: nftables',
    applies: ({ config }) => config.mode === 'nftables',
    says: 'There are no chains per service: services are elements of named sets and maps.',
  },
  {
    fields: 'mode',
    applies: ({ standIns }) => standIns !== 'refused',
    says: 'Where the mode cannot run, another stands in, with a warning and an Event; kube-proxy ends. --strict-proxy-mode makes it end here, too.',
  },
  {
    fields: 'nftables.minSyncPeriod, ipvs.minSyncPeriod',
    applies: ({ config, minSyncPeriod }) => config.mode !== 'iptables' && minSyncPeriod === 'defaulted',
    says: 'It is not given, so changes are applied at once, and every 20 to 100 ms while they keep coming: they cost little. kube-proxy waits a second. What is given is honoured.',
  },
  {
    fields: 'conntrack.*, oomScoreAdj',
    applies: () => false,
    says: 'A kernel setting that cannot be changed is logged, and the proxy goes on; kube-proxy ends.',
  },
  {
    fields: 'the file itself',
    applies: ({ file }) => file !== undefined,
    says: 'A changed file is applied while the program runs, and one that is wrong is refused; kube-proxy ends when it changes.',
  },
  {
    fields: 'iptables.localhostNodePorts',
    applies: ({ config }) => config.mode === 'iptables' && config.iptables.localhostNodePorts,
    says: 'route_localnet is turned on after the rule that makes it safe, and off again by --cleanup; kube-proxy turns it on first, and never off.',
  },
  {
    fields: 'featureGates: KubeProxyNFTablesLocalhostNodePorts',
    applies: ({ config }) =>
      config.mode === 'nftables' && featureEnabled(config.featureGates, 'KubeProxyNFTablesLocalhostNodePorts'),
    says: 'UDP is relayed on localhost as TCP is; kube-proxy refuses it. With externalTrafficPolicy Local, the node reaches all endpoints there, as it does on every other address; kube-proxy takes those of the node alone.',
  },
  {
    fields: 'enableProfiling',
    applies: ({ config }) => config.enableProfiling,
    says: "The profiles under /debug/pprof are V8's, not in Go's format.",
  },
  {
    fields: 'winkernel.*, windowsRunAsService',
    applies: ({ config: { winkernel, windowsRunAsService } }) =>
      windowsRunAsService || Object.values(winkernel).some((value) => value !== '' && value !== false),
    says: 'Settings for Windows are read and written, and not used.',
  },
  {
    fields: 'detectLocalMode: NodeCIDR',
    applies: ({ config }) => config.detectLocalMode === 'NodeCIDR',
    says: 'When spec.podCIDRs of the Node changes, the rules follow; kube-proxy ends.',
  },
  {
    fields: 'the Node',
    applies: () => false,
    says: 'When its addresses change the rules follow, when it goes, or says nothing of addresses or podCIDRs any more, what was known stays; kube-proxy ends. While a start waits for them, /livez says 200 and /healthz 503; kube-proxy does not listen yet.',
  },
]
