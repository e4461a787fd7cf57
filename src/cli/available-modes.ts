import type { AvailableModes } from '../config/modes.ts'
import { modeNames } from '../modes/all.ts'

/** The modes that may be chosen. */
export const availableModes: AvailableModes = modeNames
