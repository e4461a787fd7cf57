// What later versions of Kubernetes change for a configuration that is not touched (KEP-5495, KEP-5707): pure.

import { featureEnabled } from '../../config/feature-gates.ts'
import type { KubeProxyConfiguration } from '../../config/types.ts'
import { type Finding, finding } from './finding-kinds.ts'

export function judgeExternalIPs({ featureGates }: KubeProxyConfiguration): Finding[] {
  if (!featureEnabled(featureGates, 'AllowServiceExternalIPs')) return []
  const isSet = featureGates['AllowServiceExternalIPs'] !== undefined
  const message = isSet
    ? 'External IPs of Services end with Kubernetes 1.43, which has no feature gate AllowServiceExternalIPs any more'
    : 'External IPs of Services are off from Kubernetes 1.40 on, and end with 1.43'
  const keep = isSet ? '' : '; to keep them until then: featureGates: {AllowServiceExternalIPs: true}'
  return [
    finding(
      'external-ips-end',
      message,
      `give Services with spec.externalIPs a load balancer, whose addresses stand in their status${keep}; to see today what it is like without: featureGates: {AllowServiceExternalIPs: false}`,
    ),
  ]
}

export function judgeIpvs({ mode, featureGates }: KubeProxyConfiguration): Finding[] {
  if (mode !== 'ipvs') return []
  const isSet = featureGates['KubeProxyIPVS'] !== undefined
  const message = isSet
    ? "kube-proxy's ipvs mode ends with Kubernetes 1.43"
    : "kube-proxy's ipvs mode is off from Kubernetes 1.40 on, and ends with 1.43"
  const keep = isSet ? '' : 'to keep it until then: featureGates: {KubeProxyIPVS: true}; '
  return [finding('mode-ends', message, `${keep}the mode to move to is nftables, or iptables on kernels before 5.13`)]
}
