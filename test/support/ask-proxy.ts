import { defaultSocket } from '../../src/serve/control/path.ts'
import type { Known } from '../../src/diagnose/explain/known.ts'
import { readKnownFromProxy } from '../../src/diagnose/explain/read-known.ts'
import { messageOf } from '../../src/lib/errors.ts'
import { eventually } from './eventually.ts'
import type { Netns } from './netns/netns.ts'

/** What the proxy of a node knows. The socket of a process that was killed a moment ago is replaced a moment later. */
export async function askProxy(node: Netns): Promise<Known> {
  let known: Known | undefined
  await eventually('the proxy can be asked', async () => {
    try {
      known = await readKnownFromProxy(node.enter(() => defaultSocket()))
      return undefined
    } catch (error) {
      return messageOf(error)
    }
  })
  return known!
}
