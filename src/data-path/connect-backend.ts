// Connects to a backend, in the client's name if the backend is to see the client.

import { boundCall, lastErrno } from '../system/libc.ts'
import { isDisguised, type ShownClient } from './client-sources.ts'
import type { ListenerOptions } from './listener.ts'
import type { PoolProtocol } from './sockets.ts'
import type { ThreadContext } from './thread-context.ts'

export interface BackendSocket {
  readonly fd: number
  /** undefined: the backend sees this node. */
  readonly shown: ShownClient | undefined
}

export interface ConnectTarget {
  readonly protocol: PoolProtocol
  /** Socket addresses. */
  readonly backend: Uint8Array
  readonly client: Uint8Array
}

/** Only of `failed` the backend is to blame. */
export type ConnectFailure = 'failed' | 'own fault' | 'no socket'

/** connect() found no free port, or no memory: nothing was sent to the backend. */
const OWN_FAULT: ReadonlySet<string> = new Set(
  'EADDRNOTAVAIL EADDRINUSE EAGAIN EINTR EMFILE EMSGSIZE ENFILE ENOBUFS ENOMEM'.split(' '),
)

/** So many source ports are tried while earlier connections still use them. Then the backend sees the node. */
const SOURCE_PORTS_TRIED = 4

let connectCall: ReturnType<typeof boundCall<'connect'>> | undefined

/** The connection may be under way when this returns. */
export function connectToBackend(
  context: ThreadContext,
  { family, seenAs, node }: ListenerOptions,
  { protocol, backend, client }: ConnectTarget,
): BackendSocket | ConnectFailure {
  connectCall ??= boundCall('connect')
  const { spares, sources, loop, warn } = context
  const disguise = { family, protocol, node, backend, client }
  const showsClient = isDisguised(seenAs, disguise)
  for (let ports = SOURCE_PORTS_TRIED; ; ports--) {
    const fd = spares.take(family, protocol)
    if (fd === -1) {
      warn(`Cannot connect to a backend: ${spares.errno}`)
      return 'no socket'
    }
    if (showsClient && ports === 0) sources.noPortIsFree()
    const shown = showsClient && ports > 0 ? sources.disguise(fd, disguise) : undefined
    if (shown === 'spent') {
      loop.close(fd)
      continue
    }
    if (connectCall(fd, backend, backend.length) === 0) return { fd, shown }
    const errno = lastErrno()
    if (errno === 'EINPROGRESS') return { fd, shown }
    closeBackendSocket(context, { fd, shown })
    // A connection to this backend that is about to end still uses the port.
    if (errno === 'EADDRNOTAVAIL' && shown !== undefined) continue
    if (!OWN_FAULT.has(errno)) return 'failed'
    warn(`Cannot connect to a backend: ${errno}`)
    return 'own fault'
  }
}

/** The backend gets no more packets of this connection, but perhaps a reset. */
export function closeBackendSocket({ loop, sources }: ThreadContext, { fd, shown }: BackendSocket): void {
  loop.close(fd, shown && (() => sources.over(shown)))
}
