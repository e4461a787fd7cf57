import type { AvailableModes } from '../config/modes.ts'
import { modeNames } from '../proxy/modes.ts'

/** The modes that may be chosen. */
export const availableModes: AvailableModes = modeNames
