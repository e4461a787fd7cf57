// A configuration, in another mode.

import { completeConfiguration } from '../../config/complete.ts'
import type { KubeProxyConfiguration } from '../../config/types.ts'
import { modes } from '../../modes/all.ts'
import type { Mode } from '../../modes/contract.ts'

/** The same configuration in another mode. What was the default of its own mode becomes that of the other. */
export function configurationFor(config: KubeProxyConfiguration, mode: Mode): KubeProxyConfiguration {
  if (config.mode === mode.name) return config
  const defaults = modes.find(({ name }) => name === config.mode)?.defaultNodePortAddresses ?? []
  const isDefault = JSON.stringify(config.nodePortAddresses) === JSON.stringify(defaults)
  const nodePortAddresses = isDefault ? [] : config.nodePortAddresses
  return completeConfiguration({ ...config, mode: mode.name, nodePortAddresses }, modes).config
}
