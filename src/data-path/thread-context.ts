// What the listeners, relays and sessions of one thread share.

import { lastErrno } from '../system/libc.ts'
import type { BackendCounters } from './backend-counters.ts'
import type { ClientSources } from './client-sources.ts'
import type { EventHandler, EventLoop, Resumable } from './event-loop.ts'
import type { SpareSockets } from './spare-sockets.ts'
import type { TimerQueue } from './timer-queue.ts'
import type { Workers } from './workers.ts'

export interface ThreadContext {
  readonly loop: EventLoop
  readonly workers: Workers
  readonly sources: ClientSources
  readonly spares: SpareSockets
  readonly backendCounters: BackendCounters
  /** Listeners that wait until there is memory or a file descriptor again. */
  readonly paused: TimerQueue<Resumable>
  /** Connections take only file descriptors below this one. */
  readonly endFd: number
  readonly warn: (message: string) => void
}

/** Watches a socket; false, with a warning, when the kernel has no room for that. */
export function watchOrWarn({ loop, warn }: ThreadContext, fd: number, events: number, handler: EventHandler): boolean {
  if (loop.watch(fd, events, handler)) return true
  warn(`Cannot watch the sockets of more clients, they are turned away: ${lastErrno()} (see fs.epoll.max_user_watches)`)
  return false
}
