// What the network of a pod says about an endpoint that does not answer. Only of pods on this machine whose network may be entered.

import { statSync } from 'node:fs'
import { findWays } from '../../links/find-ways.ts'
import { formatIp, ipBytes } from '../../lib/ip.ts'
import { inNetwork } from '../../system/netns.ts'
import { parseListeners } from '../check/parse-listeners.ts'
import { networkWith, placeOf } from '../explain/networks.ts'
import { readText } from '../read-text.ts'
import type { InsideFact } from './facts.ts'

/** `client`: whom its answers are sent to. Undefined: it is elsewhere, or may not be entered. */
export function readInside(
  { address, port }: { readonly address: string; readonly port: number },
  client: string,
): InsideFact | undefined {
  const path = networkWith(address)
  if (path === undefined) return undefined
  const read = () => {
    // Of this thread, which is in that network: not of the process.
    const files = ['tcp', 'tcp6'].map((name) => readText(`/proc/thread-self/net/${name}`))
    const [wayBack] = findWays([ipBytes(client)])
    return { listeners: files.flatMap((text) => parseListeners(text)), wayBack: wayBack! }
  }
  try {
    const { listeners, wayBack } = inNetwork(path, read)
    const own = listeners.filter((each) => each.port === port)
    return {
      listensAt: own.map((each) => formatIp(each.address)),
      otherPorts: [...new Set(listeners.map((each) => each.port))]
        .filter((each) => each !== port)
        .sort((a, b) => a - b),
      waiting: Math.max(0, ...own.map((each) => each.waiting)),
      wayBack,
      enter: placeOf(statSync(path).ino).enter,
    }
  } catch {
    // It has just ended.
    return undefined
  }
}
