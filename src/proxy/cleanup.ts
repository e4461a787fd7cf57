// Removes all that the proxy ever put into this machine, in any mode.

import type { RunOptions } from '../config/run-options.ts'
import { allModes } from './modes.ts'

/** Goes on past a mode that cannot be cleaned up, and rejects in the end. */
export async function runCleanup({ log }: RunOptions): Promise<void> {
  const failures: unknown[] = []
  for (const mode of allModes) {
    try {
      await mode.cleanup(log)
    } catch (error) {
      log.error(error, 'Cannot remove everything', { mode: mode.name })
      failures.push(error)
    }
  }
  if (failures.length > 0) throw new AggregateError(failures, 'Cannot clean up everything, see above')
}
