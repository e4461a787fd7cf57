import type { AvailableModes } from '../config/modes.ts'

/** The modes that exist so far. A mode is added here when its folder in src/modes is. */
export const availableModes: AvailableModes = ['nftables', 'ipvs', 'userspace']
