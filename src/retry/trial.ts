// Whether a backend takes part in a handshake with this node.

import { connect } from 'node:net'
import type { Place } from './decode-failure.ts'
import type { TrialResult } from './suspects.ts'

/** A handshake within a cluster takes a millisecond. A client's next SYN comes after a second. */
const TRIAL_MS = 400

/** What says nothing about the other side. EACCES does: it is what a route says that prohibits the way. */
const OWN_FAULTS: ReadonlySet<string | undefined> = new Set([
  'EMFILE',
  'ENFILE',
  'ENOBUFS',
  'ENOMEM',
  'EADDRNOTAVAIL',
  'EPERM',
])

/** Connects, and hangs up at once. */
export function openTrial({ ip, port }: Place): Promise<TrialResult> {
  return new Promise((resolve) => {
    const socket = connect({ host: ip, port })
    const end = (result: TrialResult) => {
      clearTimeout(timer)
      socket.destroy()
      resolve(result)
    }
    // Where the program itself was late, an answer may be waiting: it is heard before this is believed.
    const timer = setTimeout(() => setImmediate(() => end('fails')), TRIAL_MS)
    socket.on('connect', () => end('answers'))
    socket.on('error', (error: NodeJS.ErrnoException) => end(OWN_FAULTS.has(error.code) ? 'unknown' : 'fails'))
  })
}
