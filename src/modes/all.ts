// The modes that exist: a new one is a folder and a line here. The first is the default.

import type { Logger } from '../lib/log.ts'
import type { Mode } from './contract.ts'
import { iptablesMode } from './iptables/mode.ts'
import { ipvsMode } from './ipvs/mode.ts'
import { nftablesMode } from './nftables/mode.ts'
import { userspaceMode } from './userspace/mode.ts'

export const modes: readonly Mode[] = [iptablesMode, ipvsMode, nftablesMode, userspaceMode]

/** In the order in which they are listed. */
export const modeNames: readonly string[] = modes.map(({ name }) => name)

export function modeNamed(name: string): Mode {
  const mode = modes.find((each) => each.name === name)
  if (mode !== undefined) return mode
  throw new Error(`Cannot run in mode ${name}: must be one of ${modeNames.join(', ')}`)
}

/** Removes what counts traffic, in whichever mode. */
export async function cleanUpCounting(log: Logger): Promise<void> {
  const traffic = await import('./traffic.ts')
  traffic.cleanUpCounting(log)
}
