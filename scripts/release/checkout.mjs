import { join } from 'node:path'

/** The folder of this checkout. */
export const checkout = join(import.meta.dirname, '..', '..')
