// The client's side in a probe pod: reads requests from its standard input, and writes how the dials went.

import { runDials, type KeptSockets } from './dial.ts'
import { type DialReply, type DialRequest, LineReader } from './protocol.ts'

/** Resolves when the input has ended. */
export async function answerDialRequests(
  input: AsyncIterable<Uint8Array>,
  write: (line: string) => void,
): Promise<void> {
  const lines = new LineReader()
  const kept: KeptSockets = new Map()
  for await (const bytes of input) {
    for (const line of lines.push(bytes)) {
      const { id, dials } = JSON.parse(line) as DialRequest
      const reply: DialReply = { id, attempts: await runDials(dials, kept) }
      write(`${JSON.stringify(reply)}\n`)
    }
  }
  for (const socket of kept.values()) socket.close()
}
