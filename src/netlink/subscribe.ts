// Receives what the kernel sends without being asked, from the event loop of the main thread.

import { watchReadable } from '../system/readable.ts'
import { drainSocket } from './drain.ts'
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
  /** Everything that waited was passed on. */
  readonly onRead?: () => void
}

/** Listens to the groups, in the network namespace of this thread, until it is closed. */
export function subscribe(
  protocol: number,
  { prepare, onMessage, onLost, onRead, groups = [], ...options }: SubscribeOptions,
): Subscription {
  const socket = new NetlinkSocket(protocol, options)
  try {
    prepare?.(socket)
    for (const group of groups) socket.setMembership(group, 'join')
    const readable = watchReadable(socket.fd, () => {
      if (drainSocket(socket, onMessage) === 'lost') onLost?.()
      onRead?.()
    })
    return {
      socket,
      close() {
        readable.close()
        socket.close()
      },
    }
  } catch (error) {
    socket.close()
    throw error
  }
}
