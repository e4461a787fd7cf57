import type { Family } from '../../lib/ip.ts'

/** AF_INET and AF_INET6. */
export const ADDRESS_FAMILY: Readonly<Record<Family, number>> = { 4: 2, 6: 10 }
