import type { KubeProxyConfiguration } from './types.ts'

export interface Completed {
  readonly config: KubeProxyConfiguration
  readonly mode: 'given' | 'defaulted'
}

/** Fills in what depends on the mode and on the platform, after a file was read or flags were applied. */
export function completeConfiguration(config: KubeProxyConfiguration): Completed {
  const mode = config.mode === '' ? 'iptables' : config.mode
  return {
    config: {
      ...config,
      mode,
      nodePortAddresses:
        mode === 'nftables' && config.nodePortAddresses.length === 0 ? ['primary'] : config.nodePortAddresses,
      detectLocalMode: (config.detectLocalMode as string) === '' ? 'ClusterCIDR' : config.detectLocalMode,
    },
    mode: config.mode === '' ? 'defaulted' : 'given',
  }
}
