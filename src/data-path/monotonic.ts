// One clock for all threads: performance.now() starts at 0 in each of them.

// The global `performance` is a getter, and slower.
import { performance } from 'node:perf_hooks'

const offsetMs = monotonicByKernel() - performance.now()

/** Milliseconds of the kernel's monotonic clock. */
export function monotonicMs(): number {
  return performance.now() + offsetMs
}

function monotonicByKernel(): number {
  return Number(process.hrtime.bigint()) / 1e6
}
