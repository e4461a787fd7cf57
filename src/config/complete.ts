import type { AvailableModes } from './modes.ts'
import { defaultMode } from './modes.ts'
import type { KubeProxyConfiguration } from './types.ts'

export interface Completed {
  readonly config: KubeProxyConfiguration
  readonly mode: 'given' | 'defaulted'
  readonly warnings: readonly string[]
}

export interface CompleteOptions {
  readonly modes: AvailableModes
  /** Whether the user set the nftables mode's mark bit. */
  readonly nftablesMasqueradeBit: 'given' | 'defaulted'
}

/** Fills in what depends on the mode and on the platform, after a file was read or flags were applied. */
export function completeConfiguration(config: KubeProxyConfiguration, options: CompleteOptions): Completed {
  const warnings: string[] = []
  const mode = config.mode === '' ? defaultMode(options.modes) : config.mode
  const fellBack = config.mode === '' && mode !== 'iptables'
  if (fellBack) {
    warnings.push(
      `No proxy mode is chosen and there is no iptables mode in this version: using ${mode}. Choose it with --proxy-mode=${mode} or "mode: ${mode}"`,
    )
  }
  // Who chose no mode wrote the mark bit down for iptables.
  const masqueradeBit =
    fellBack && options.nftablesMasqueradeBit === 'defaulted'
      ? config.iptables.masqueradeBit
      : config.nftables.masqueradeBit
  const nodePortAddresses =
    mode === 'nftables' && config.nodePortAddresses.length === 0 ? ['primary'] : config.nodePortAddresses
  return {
    config: {
      ...config,
      mode,
      nodePortAddresses,
      nftables: { ...config.nftables, masqueradeBit },
      detectLocalMode: (config.detectLocalMode as string) === '' ? 'ClusterCIDR' : config.detectLocalMode,
    },
    mode: config.mode === '' ? 'defaulted' : 'given',
    warnings,
  }
}
