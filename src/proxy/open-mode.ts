// Opens the mode that was asked for, or, where this machine cannot run it, the one that stands in for it.

import { UnsupportedError } from '../lib/errors.ts'
import type { Mode, RunningMode, ModeOptions } from '../modes/contract.ts'
import { loadMode } from '../modes/all.ts'

/** Whether another mode may stand in for one that this machine cannot run, and which. */
export type StandIns = 'allowed' | 'with userspace' | 'refused'

/**
 * nftables stands in for iptables: it needs no programs, and its packets pass the same hooks. In userspace mode they do not: this
 * process sends them, so rules of the forward hook, which is where network policies are, never see them. That has to be asked
 * for. It is what kube-proxy's old documentation describes. A mode that is not here has no stand-in.
 */
const STAND_INS: Readonly<Record<StandIns, Readonly<Record<string, string>>>> = {
  allowed: { ipvs: 'iptables', iptables: 'nftables' },
  'with userspace': { ipvs: 'iptables', iptables: 'userspace' },
  refused: {},
}

export interface ModeInForce {
  readonly mode: Mode
  readonly open: RunningMode
  /** Why it is not the mode that was asked for, one reason per mode that was given up; empty when it is. */
  readonly reasons: readonly string[]
}

export interface ModeChoice {
  readonly name: string
  readonly standIns: StandIns
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
      const next = STAND_INS[standIns][mode.name]
      if (!(error instanceof UnsupportedError) || next === undefined) throw error
      reasons.push(`${error.message}; falling back from ${mode.name} to ${next}`)
      mode = await load(next)
    }
  }
}
