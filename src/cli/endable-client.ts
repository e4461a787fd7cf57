// A client of the proxy for commands that go on until their user ends them.

import { ControlClient } from '../serve/control/client.ts'

export interface EndableClient {
  readonly client: ControlClient
  /** Aborted by a signal, and when the reader of a pipe has gone. */
  readonly ended: AbortController
  readonly end: () => void
}

/** A question that is not answered does not keep the command: its end closes the client. */
export function openEndableClient(socket: string | undefined): EndableClient {
  const client = new ControlClient(socket ?? '')
  const ended = new AbortController()
  const end = () => {
    ended.abort()
    client.close()
  }
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, end)
  // The reader of a pipe has gone.
  process.stdout.on('error', end)
  return { client, ended, end }
}
