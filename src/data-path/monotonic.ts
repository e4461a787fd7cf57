// One clock for all threads: performance.now() starts anew in each of them.

// Imported and not taken from the globals, which look it up anew each time.
import { performance } from 'node:perf_hooks'

const offsetMs = monotonicByKernel() - performance.now()

/** Milliseconds of the kernel's monotonic clock. */
export function monotonicMs(): number {
  return performance.now() + offsetMs
}

function monotonicByKernel(): number {
  return Number(process.hrtime.bigint()) / 1e6
}
