// What later versions of Kubernetes change for a configuration that is not touched (KEP-5495, KEP-5707): pure.

import { featureEnabled } from '../../config/feature-gates.ts'
import type { KubeProxyConfiguration } from '../../config/types.ts'
import { type Finding, finding } from './finding-kinds.ts'

export function judgeExternalIPs({ featureGates }: KubeProxyConfiguration): Finding[] {
  if (!featureEnabled(featureGates, 'AllowServiceExternalIPs')) return []
  const isSet = featureGates['AllowServiceExternalIPs'] !== undefined
  const message = isSet
    ? 'Kubernetes 1.43 removes external IPs of Services, and the feature gate AllowServiceExternalIPs'
    : 'Kubernetes 1.40 turns external IPs of Services off, and 1.43 removes them'
  const keep = isSet ? '' : '; to keep them until then: featureGates: {AllowServiceExternalIPs: true}'
  return [
    finding(
      'external-ips-end',
      message,
      `give Services with spec.externalIPs a load balancer, whose addresses are in their status${keep}; to try today how it is without: featureGates: {AllowServiceExternalIPs: false}`,
    ),
  ]
}

export function judgeIpvs({ mode, featureGates }: KubeProxyConfiguration): Finding[] {
  if (mode !== 'ipvs') return []
  const isSet = featureGates['KubeProxyIPVS'] !== undefined
  const message = isSet
    ? "Kubernetes 1.43 removes kube-proxy's ipvs mode"
    : "Kubernetes 1.40 turns kube-proxy's ipvs mode off, and 1.43 removes it"
  const keep = isSet ? '' : 'to keep it until then: featureGates: {KubeProxyIPVS: true}; '
  return [finding('mode-ends', message, `${keep}the mode to move to is nftables, or iptables on kernels before 5.13`)]
}
