// Settings that this program treats differently from kube-proxy. docs/reference/configuration.md lists them all,
// `kube-proxy check` those that apply.

import { featureEnabled } from '../../config/feature-gates.ts'
import type { ConfigurationFacts } from './facts.ts'

export interface Difference {
  /** The fields that it is about. */
  readonly fields: string
  readonly applies: (configuration: ConfigurationFacts) => boolean
  readonly text: string
}

export const differences: readonly Difference[] = [
  {
    fields: 'mode: userspace',
    applies: ({ config }) => config.mode === 'userspace',
    text: 'kube-proxy removed the userspace mode in 1.26; here it exists. Network policies have no effect on the connections that it carries.',
  },
  {
    fields: 'mode: ipvs',
    applies: ({ config }) => config.mode === 'ipvs',
    text: 'The rules around IPVS are in the nftables table kube-proxy-ipvs, not in iptables and ipsets.',
  },
  {
    fields: 'mode: nftables',
    applies: ({ config }) => config.mode === 'nftables',
    text: 'There are no chains per service: services are elements of named sets and maps.',
  },
  {
    fields: 'mode',
    applies: ({ standIns }) => standIns !== 'refused',
    text: 'If the mode cannot run, another runs in its place, with a warning and an Event; kube-proxy exits. With --strict-proxy-mode this program exits, too.',
  },
  {
    fields: 'nftables.minSyncPeriod, ipvs.minSyncPeriod',
    applies: ({ config, minSyncPeriod }) => config.mode !== 'iptables' && minSyncPeriod === 'defaulted',
    text: 'Without a value, changes are applied at once, and every 20 to 100 ms while more follow: they cost little. kube-proxy waits a second. A value that is given is used.',
  },
  {
    fields: 'conntrack.*, oomScoreAdj',
    applies: () => false,
    text: 'If a kernel setting cannot be changed, the proxy logs that and continues; kube-proxy exits.',
  },
  {
    fields: 'the file itself',
    applies: ({ file }) => file !== undefined,
    text: 'A changed file is applied while the program runs, and an invalid one is refused; kube-proxy exits when the file changes.',
  },
  {
    fields: 'iptables.localhostNodePorts',
    applies: ({ config }) => config.mode === 'iptables' && config.iptables.localhostNodePorts,
    text: 'The proxy turns route_localnet on after it has written the rule that makes this safe, and --cleanup turns it off. kube-proxy turns it on first, and never off.',
  },
  {
    fields: 'featureGates: KubeProxyNFTablesLocalhostNodePorts',
    applies: ({ config }) =>
      config.mode === 'nftables' && featureEnabled(config.featureGates, 'KubeProxyNFTablesLocalhostNodePorts'),
    text: 'On localhost, UDP is relayed as TCP is; kube-proxy refuses it. With externalTrafficPolicy Local, the node reaches all endpoints there, as on every other address; kube-proxy uses only those of the node.',
  },
  {
    fields: 'enableProfiling',
    applies: ({ config }) => config.enableProfiling,
    text: "The profiles under /debug/pprof have V8's format, not Go's.",
  },
  {
    fields: 'winkernel.*, windowsRunAsService',
    applies: ({ config: { winkernel, windowsRunAsService } }) =>
      windowsRunAsService || Object.values(winkernel).some((value) => value !== '' && value !== false),
    text: 'Settings for Windows are read and written, but have no effect.',
  },
  {
    fields: 'detectLocalMode: NodeCIDR',
    applies: ({ config }) => config.detectLocalMode === 'NodeCIDR',
    text: 'When spec.podCIDRs of the Node changes, the rules follow; kube-proxy exits.',
  },
  {
    fields: 'the Node',
    applies: () => false,
    text: 'When its addresses change, the rules follow. When it is deleted, or has no addresses or podCIDRs any more, the last known ones stay. kube-proxy exits in both cases. While a start waits for them, /livez answers 200 and /healthz 503; kube-proxy does not listen yet.',
  },
]
