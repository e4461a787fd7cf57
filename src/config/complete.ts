import type { AvailableModes } from './modes.ts'
import type { KubeProxyConfiguration } from './types.ts'

export interface Completed {
  readonly config: KubeProxyConfiguration
  readonly mode: 'given' | 'defaulted'
}

/** Fills in the defaults that depend on the mode, after flags were applied. */
export function completeConfiguration(config: KubeProxyConfiguration, modes: AvailableModes): Completed {
  const mode = config.mode === '' ? modes[0]!.name : config.mode
  const facts = modes.find(({ name }) => name === mode)
  const nodePortAddresses =
    config.nodePortAddresses.length === 0 ? (facts?.defaultNodePortAddresses ?? []) : config.nodePortAddresses
  return {
    config: {
      ...config,
      mode,
      nodePortAddresses,
      detectLocalMode: (config.detectLocalMode as string) === '' ? 'ClusterCIDR' : config.detectLocalMode,
    },
    mode: config.mode === '' ? 'defaulted' : 'given',
  }
}
