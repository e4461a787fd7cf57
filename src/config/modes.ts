// Which proxy modes may be chosen, and what is said about the others.

import { featureEnabled } from './feature-gates.ts'

/** The names of the modes that exist in this program, in the order in which they are listed. */
export type AvailableModes = readonly string[]

/** Why a mode cannot be used and which can, or undefined. */
export function checkMode(
  mode: string,
  available: AvailableModes,
  featureGates: Readonly<Record<string, boolean>>,
): string | undefined {
  const allowed = available.filter((each) => each !== 'ipvs' || featureEnabled(featureGates, 'KubeProxyIPVS'))
  if (allowed.includes(mode)) return undefined
  return `${reasonAgainst(mode, available)}must be ${listOf(allowed)}`
}

function reasonAgainst(mode: string, available: AvailableModes): string {
  if (mode === 'kernelspace') return 'the mode kernelspace is for Windows; '
  return available.includes(mode) ? `the mode ${mode} is turned off by a feature gate; ` : ''
}

function listOf(modes: readonly string[]): string {
  return modes.length === 1 ? `${modes[0]}` : `one of ${modes.join(', ')}`
}
