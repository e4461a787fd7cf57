// Opens the mode that was asked for, or, where this machine cannot run it, the one that stands in for it.

import { UnsupportedError } from '../lib/errors.ts'
import type { Mode, RunningMode, ModeOptions } from '../modes/contract.ts'
import { loadMode } from '../modes/all.ts'

/** As kube-proxy's documentation describes it. What is not here has no stand-in. */
const STAND_INS: Readonly<Record<string, string>> = { ipvs: 'iptables', iptables: 'userspace' }

export interface ModeInForce {
  readonly mode: Mode
  readonly open: RunningMode
  /** Why it is not the mode that was asked for, one reason per mode that was given up; empty when it is. */
  readonly reasons: readonly string[]
}

export interface ModeChoice {
  readonly name: string
  readonly standIns: 'allowed' | 'refused'
  /** How a mode is found by its name; tests have modes of their own. */
  readonly load?: (name: string) => Promise<Mode>
}

/** Rejects with UnsupportedError when neither the mode nor a stand-in works, or when stand-ins are not wanted. */
export async function openModeOrStandIn(
  { name, standIns, load = loadMode }: ModeChoice,
  options: ModeOptions,
): Promise<ModeInForce> {
  const reasons: string[] = []
  for (let mode = await load(name); ;) {
    try {
      return { mode, open: await mode.open(options), reasons }
    } catch (error) {
      const next = STAND_INS[mode.name]
      if (!(error instanceof UnsupportedError) || standIns === 'refused' || next === undefined) throw error
      reasons.push(`${error.message}; falling back from ${mode.name} to ${next}`)
      mode = await load(next)
    }
  }
}
