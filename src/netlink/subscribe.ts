// Receives what the kernel sends without being asked, from the event loop of the main thread.

import { watchReadable } from '../system/readable.ts'
import { drainFor } from './drain.ts'
import type { Message } from './message.ts'
import { NetlinkSocket, type NetlinkSocketOptions } from './socket.ts'

export interface Subscription {
  readonly socket: NetlinkSocket
  readonly close: () => void
}

export interface SubscribeOptions extends NetlinkSocketOptions {
  /** For filters: before the first notification comes. */
  readonly prepare?: (socket: NetlinkSocket) => void
  readonly onMessage: (message: Message) => void
  /** The kernel had more, and it is gone. */
  readonly onLost?: (() => void) | undefined
  /** Reads for so long and then leaves as long to others: where more may come than can be read. */
  readonly sliceMs?: number
  /** Everything that waited was passed on, or what there was time for. */
  readonly onRead?: () => void
}

/** Listens to the groups, in the network namespace of this thread, until it is closed. */
export function subscribe(
  protocol: number,
  { prepare, onMessage, onLost, onRead, sliceMs = Infinity, groups = [], ...options }: SubscribeOptions,
): Subscription {
  const socket = new NetlinkSocket(protocol, options)
  try {
    prepare?.(socket)
    for (const group of groups) socket.setMembership(group, 'join')
    let pause: NodeJS.Timeout | undefined
    let isClosed = false
    let hasLost = false
    const read = () => {
      if (pause !== undefined) return
      const { isLost, isMore } = drainFor(sliceMs, socket, onMessage)
      hasLost ||= isLost
      // Once it has lost something, the kernel passes on nothing, and does not say so again, until the socket is empty.
      if (hasLost && !isMore) {
        hasLost = false
        onLost?.()
      }
      onRead?.()
      if (isMore && !isClosed) pause = setTimeout(goOn, sliceMs).unref()
    }
    const goOn = () => {
      pause = undefined
      read()
    }
    const readable = watchReadable(socket.fd, read)
    return {
      socket,
      close() {
        isClosed = true
        clearTimeout(pause)
        readable.close()
        socket.close()
      },
    }
  } catch (error) {
    socket.close()
    throw error
  }
}
