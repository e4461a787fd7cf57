// Which mode would run, by what the modes found: the same way that the start goes, without its tries.

import { type AvailableModes, standInFor, type StandIns } from '../../config/modes.ts'
import type { ModeOutlook } from '../../modes/contract.ts'

export interface PlannedMode {
  /** Undefined when none can run. */
  readonly chosen: string | undefined
  /** The modes that were given up on the way, in order. */
  readonly givenUp: readonly string[]
}

export interface ModeQuestion {
  readonly asked: string
  readonly standIns: StandIns
  readonly outlooks: ReadonlyMap<string, ModeOutlook>
  readonly modes: AvailableModes
}

export function planMode({ asked, standIns, outlooks, modes }: ModeQuestion): PlannedMode {
  const givenUp: string[] = []
  for (let name: string | undefined = asked; name !== undefined;) {
    if (outlooks.get(name)?.lacks.length === 0) return { chosen: name, givenUp }
    givenUp.push(name)
    const mode = modes.find((each) => each.name === name)
    name = mode === undefined ? undefined : standInFor(mode, standIns)
  }
  return { chosen: undefined, givenUp }
}
