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
  /** Everything that waited was passed on, or what there was time for. */
  readonly onRead?: () => void
}

/** Where more comes than can be read, as of connections when a pod makes very many, half of the time is for others. */
const SLICE_MS = 10

/** Listens to the groups, in the network namespace of this thread, until it is closed. */
export function subscribe(
  protocol: number,
  { prepare, onMessage, onLost, onRead, groups = [], ...options }: SubscribeOptions,
): Subscription {
  const socket = new NetlinkSocket(protocol, options)
  try {
    prepare?.(socket)
    for (const group of groups) socket.setMembership(group, 'join')
    let pause: NodeJS.Timeout | undefined
    let isClosed = false
    const read = () => {
      if (pause !== undefined) return
      const { isLost, isMore } = drainFor(SLICE_MS, socket, onMessage)
      if (isLost) onLost?.()
      onRead?.()
      if (isMore && !isClosed) pause = setTimeout(goOn, SLICE_MS).unref()
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
