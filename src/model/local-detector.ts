// How the proxy recognizes connections from pods.

import { formatCidr, parseCidr } from '../lib/ip.ts'
import type { Family } from '../lib/ip.ts'
import type { LocalDetector } from './types.ts'

/** detectLocalMode and the settings that go with its values. */
export interface DetectLocalSettings {
  readonly mode: 'ClusterCIDR' | 'NodeCIDR' | 'BridgeInterface' | 'InterfaceNamePrefix'
  readonly clusterCIDRs: readonly string[]
  readonly bridgeInterface: string
  readonly interfaceNamePrefix: string
}

const NONE: LocalDetector = { kind: 'none' }

/** When the mode's setting is empty, or has nothing for the family, no connection counts as a pod's. */
export function planLocalDetector(
  settings: DetectLocalSettings,
  podCIDRs: readonly string[],
  family: Family,
): LocalDetector {
  switch (settings.mode) {
    case 'ClusterCIDR':
      return byFirstCidr(settings.clusterCIDRs, family)
    case 'NodeCIDR':
      return byFirstCidr(podCIDRs, family)
    case 'BridgeInterface':
      return settings.bridgeInterface === '' ? NONE : { kind: 'interface', name: settings.bridgeInterface }
    case 'InterfaceNamePrefix':
      return settings.interfaceNamePrefix === ''
        ? NONE
        : { kind: 'interfacePrefix', prefix: settings.interfaceNamePrefix }
  }
}

/** For the log and for explain. */
export function describeLocalDetector(detector: LocalDetector): string {
  switch (detector.kind) {
    case 'none':
      return 'none'
    case 'cidr':
      return `source in ${detector.cidrs.map(formatCidr).join(', ')}`
    case 'interface':
      return `from interface ${detector.name}`
    case 'interfacePrefix':
      return `from interface ${detector.prefix}*`
  }
}

/** A cluster has one range per family; kube-proxy uses the first of several. */
function byFirstCidr(texts: readonly string[], family: Family): LocalDetector {
  const cidr = texts.map((text) => parseCidr(text.trim())).find((parsed) => parsed?.family === family)
  return cidr === undefined ? NONE : { kind: 'cidr', cidrs: [cidr] }
}
