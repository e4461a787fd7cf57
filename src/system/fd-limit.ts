// How many files and sockets this process may have open.

import { mustCall, tryCall } from './libc.ts'

const RLIMIT_NOFILE = 7
const THIS_PROCESS = 0

/** How many it may have open now. */
export function readFdLimit(): number {
  return Number(readLimits()[0])
}

/** For a proxy that relays connections: one for each listener, and two for each connection. */
const WANTED = 1_048_576

/** Raises the limit towards what is wanted, as far as this process may; returns what it is now. */
export function raiseFdLimit(): number {
  const [soft = 0, hard = 0] = Array.from(readLimits(), Number)
  if (soft >= WANTED) return soft
  // Raising the hard limit takes a right. Every process may go up to it.
  for (const limit of [WANTED, Math.min(WANTED, hard)]) {
    const limits = new BigUint64Array([BigInt(limit), BigInt(Math.max(limit, hard))])
    if (limit > soft && tryCall('prlimit', THIS_PROCESS, RLIMIT_NOFILE, limits, null) === 0) return limit
  }
  return soft
}

function readLimits(): BigUint64Array {
  const limits = new BigUint64Array(2)
  mustCall('read the limit of open files', 'prlimit', THIS_PROCESS, RLIMIT_NOFILE, null, limits)
  return limits
}
