// How many bytes of objects stay alive after a piece of work: the same on a slow and on a loaded machine.

import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

/** What `work` returns is held until it has been measured. */
export function bytesKept(work: () => unknown): number {
  const before = heapUsed()
  const kept = work()
  const after = heapUsed()
  // Used behind the measurement, so that it is alive during it.
  if (kept === before) throw new Error('Cannot happen: the work returned the size of the heap')
  return after - before
}

function heapUsed(): number {
  // What dies in one collection may have been all that kept other objects alive.
  for (let i = 0; i < 3; i++) collect()
  return process.memoryUsage().heapUsed
}

/** What buffers that are alive hold, outside of the heap. */
export function bytesInBuffers(): number {
  for (let i = 0; i < 3; i++) collect()
  return process.memoryUsage().arrayBuffers
}
