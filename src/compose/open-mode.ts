// Opens the configured mode, or its stand-in where this machine cannot run it.

import { standInFor, type StandIns } from '../config/modes.ts'
import { UnsupportedError } from '../lib/errors.ts'
import { modeNamed } from '../modes/all.ts'
import type { Mode, ModeOptions, RunningMode } from '../modes/contract.ts'

export interface ModeInForce {
  readonly mode: Mode
  readonly running: RunningMode
  /** Why it is not the configured mode: one reason for each mode that cannot run; empty when it is. */
  readonly reasons: readonly string[]
}

export interface ModeChoice {
  readonly name: string
  readonly standIns: StandIns
  /** How a mode is found by its name; tests have modes of their own. */
  readonly find?: (name: string) => Mode
}

/** Rejects with UnsupportedError when neither the mode nor a stand-in works, or when stand-ins are not wanted. */
export async function openModeOrStandIn(
  { name, standIns, find = modeNamed }: ModeChoice,
  options: ModeOptions,
): Promise<ModeInForce> {
  const reasons: string[] = []
  for (let mode = find(name); ;) {
    try {
      return { mode, running: await (await mode.load()).open(options), reasons }
    } catch (error) {
      const next = standInFor(mode, standIns)
      if (!(error instanceof UnsupportedError) || next === undefined) throw error
      reasons.push(`${error.message}; falling back from ${mode.name} to ${next}`)
      mode = find(next)
    }
  }
}
