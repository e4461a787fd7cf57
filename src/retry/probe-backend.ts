// Probes a backend: does it complete a TCP handshake with this node?

import { connect } from 'node:net'
import type { Place } from './decode-failure.ts'
import type { ProbeResult } from './suspects.ts'

/** A handshake within a cluster takes a millisecond. A client's next SYN comes after a second. */
const PROBE_MS = 400

/** Errors that say nothing about the backend. EACCES does: a route of type "prohibit" gives it. */
const OWN_FAULTS: ReadonlySet<string | undefined> = new Set([
  'EMFILE',
  'ENFILE',
  'ENOBUFS',
  'ENOMEM',
  'EADDRNOTAVAIL',
  'EPERM',
])

/** Connects, and closes the connection at once. */
export function probeBackend({ ip, port }: Place): Promise<ProbeResult> {
  return new Promise((resolve) => {
    const socket = connect({ host: ip, port })
    const end = (result: ProbeResult) => {
      clearTimeout(timer)
      socket.destroy()
      resolve(result)
    }
    // If this process was late, an answer may be waiting: read it before giving up.
    const timer = setTimeout(() => setImmediate(() => end('fails')), PROBE_MS)
    socket.on('connect', () => end('answers'))
    socket.on('error', (error: NodeJS.ErrnoException) => end(OWN_FAULTS.has(error.code) ? 'unknown' : 'fails'))
  })
}
