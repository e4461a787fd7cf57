// How the cost of something grows with its size: measured as CPU time of this thread, so that a loaded machine does not matter
// much, and compared as a ratio, so that a slow one does not matter at all.

import { readFileSync } from 'node:fs'

export interface GrowthOptions<I> {
  /** Makes the input of this size; not measured. */
  readonly make: (size: number) => I
  readonly run: (input: I) => unknown
  /** The smaller size. */
  readonly size: number
  readonly factor?: number
  readonly tries?: number
}

export interface Growth {
  readonly smallMs: number
  readonly largeMs: number
  /** The exponent: 1 is linear, 2 is quadratic. */
  readonly exponent: number
}

/** Anything below is noise of the clock, and too fast to trouble an operator. */
const LEAST_MS = 2

/** The best of several tries of each size, alternating. Ends early when the second round is good enough. */
export async function measureGrowth<I>(options: GrowthOptions<I>): Promise<Growth> {
  const { make, run, size, factor = 8, tries = 8 } = options
  const small = make(size)
  const large = make(size * factor)
  let smallMs = Number.POSITIVE_INFINITY
  let largeMs = Number.POSITIVE_INFINITY
  let exponent = Number.POSITIVE_INFINITY
  for (let i = 0; i < tries; i++) {
    smallMs = Math.min(smallMs, await cpuMs(() => run(small)))
    largeMs = Math.min(largeMs, await cpuMs(() => run(large)))
    exponent = Math.log(Math.max(largeMs, LEAST_MS) / Math.max(smallMs, LEAST_MS)) / Math.log(factor)
    if (i > 0 && exponent < NEARLY_LINEAR) break
  }
  return { smallMs, largeMs, exponent }
}

/** Linear, with a logarithm, garbage collection and much noise on top. What is quadratic has 2. */
export const NEARLY_LINEAR = 1.75

async function cpuMs(work: () => unknown): Promise<number> {
  const before = threadMs()
  await work()
  return threadMs() - before
}

/** How long this thread has run: other tests run in other threads of the same process. */
function threadMs(): number {
  const [nanoseconds = '0'] = readFileSync('/proc/thread-self/schedstat', 'latin1').split(' ')
  return Number(nanoseconds) / 1e6
}
