// How many bytes of objects a piece of work makes, whether they stay or not: the same on a slow and on a loaded machine.

import { Session } from 'node:inspector'
import { promisify } from 'node:util'

/** V8 looks at one allocation in about so many bytes. */
const SAMPLING_INTERVAL = 1024

interface ProfileNode {
  readonly selfSize: number
  readonly children: readonly ProfileNode[]
}

export async function bytesAllocated(work: () => unknown): Promise<number> {
  const session = new Session()
  session.connect()
  const post = promisify<string, object, unknown>((method, params, done) => session.post(method, params, done))
  try {
    await post('HeapProfiler.startSampling', {
      samplingInterval: SAMPLING_INTERVAL,
      includeObjectsCollectedByMajorGC: true,
      includeObjectsCollectedByMinorGC: true,
    })
    await work()
    const { profile } = (await post('HeapProfiler.stopSampling', {})) as { profile: { head: ProfileNode } }
    return sizeOf(profile.head)
  } finally {
    session.disconnect()
  }
}

function sizeOf({ selfSize, children }: ProfileNode): number {
  return children.reduce((sum, child) => sum + sizeOf(child), selfSize)
}
