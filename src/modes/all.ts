// The modes that exist. Each is loaded when it is needed: a node runs one of them.

import type { Mode } from './contract.ts'

const loaders: Readonly<Record<string, () => Promise<Mode>>> = {
  iptables: async () => (await import('./iptables/machine.ts')).iptablesMode,
  ipvs: async () => (await import('./ipvs/machine.ts')).ipvsMode,
  nftables: async () => (await import('./nftables/machine.ts')).nftablesMode,
  userspace: async () => (await import('./userspace/machine.ts')).userspaceMode,
}

/** In the order in which they are listed. */
export const modeNames: readonly string[] = Object.keys(loaders)

export function loadMode(name: string): Promise<Mode> {
  const load = loaders[name]
  if (load !== undefined) return load()
  throw new Error(`Cannot run in mode ${name}: must be one of ${modeNames.join(', ')}`)
}
