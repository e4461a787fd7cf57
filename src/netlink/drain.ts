// Reads what waits in a netlink socket that is subscribed to changes.

import { KernelError } from '../lib/errors.ts'
import { type Message, messagesOf } from './message.ts'
import type { NetlinkSocket } from './socket.ts'

/** The kernel says once that datagrams were lost; something that keeps saying so must not keep us reading. */
const MOST_LOSSES = 16

/**
 * Passes on each message until none is left. 'lost' when something was missed: the socket's buffer was full, or the kernel
 * had no memory to hand over what is there. That is no reason to end: the caller compares with the kernel instead.
 */
export function drainSocket(
  socket: Pick<NetlinkSocket, 'receive'>,
  onMessage: (message: Message) => void,
): 'whole' | 'lost' {
  return drainFor(Infinity, socket, onMessage).isLost ? 'lost' : 'whole'
}

/** The same for some milliseconds. `isMore`: there was no end in this time. */
export function drainFor(
  mostMs: number,
  socket: Pick<NetlinkSocket, 'receive'>,
  onMessage: (message: Message) => void,
): { readonly isLost: boolean; readonly isMore: boolean } {
  const endMs = performance.now() + mostMs
  for (let losses = 0; ;) {
    let datagram: Uint8Array | undefined
    try {
      datagram = socket.receive('poll')
    } catch (error) {
      if (!(error instanceof KernelError)) throw error
      losses++
      // What is still there is read when the next notification comes.
      if (error.errno !== 'ENOBUFS' || losses === MOST_LOSSES) return { isLost: true, isMore: false }
      continue
    }
    if (datagram === undefined) return { isLost: losses > 0, isMore: false }
    for (const message of messagesOf(datagram)) onMessage(message)
    if (performance.now() >= endMs) return { isLost: losses > 0, isMore: true }
  }
}
