// Calls back when a netlink socket has something to read.
//
// Node watches only the kinds of sockets that it knows, and a blocking read would keep one of the few threads that also
// read files and resolve names - and keep the program from ending. So the kernel is asked to send SIGIO when data arrives,
// which costs no thread, and Node turns signals into events. For the main thread only, where Node handles signals.

import { tryCall, mustCall } from './libc.ts'

const F_SETFL = 4
const F_SETOWN = 8
const O_ASYNC = 0o20000

const watched = new Map<number, () => void>()
let isListening = false

/**
 * Calls back, from the event loop, when the socket may have something to read; read until nothing is left. This does not
 * keep the program running.
 */
export function watchReadable(fd: number, onReadable: () => void): { close(): void } {
  listen()
  mustCall('ask for a signal when a socket is readable', 'fcntl', fd, F_SETOWN, process.pid)
  mustCall('ask for a signal when a socket is readable', 'fcntl', fd, F_SETFL, O_ASYNC)
  watched.set(fd, onReadable)
  // What came before the signal was asked for.
  setImmediate(() => watched.get(fd)?.())
  // The number of a socket that was closed may be another's by now.
  let isClosed = false
  return {
    close() {
      if (isClosed) return
      isClosed = true
      watched.delete(fd)
      tryCall('fcntl', fd, F_SETFL, 0)
    },
  }
}

/** Once begun, this goes on: a signal that is still under way would otherwise end the process. */
function listen(): void {
  if (isListening) return
  isListening = true
  process.on('SIGIO', () => {
    for (const onReadable of watched.values()) onReadable()
  })
}
