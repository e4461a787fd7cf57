// Lists that are sent badly.

import { Buffer } from 'node:buffer'
import type { ServerResponse } from 'node:http'
import type { Misbehaviour } from './faults.ts'

export function sendMisbehaving(response: ServerResponse, chunks: readonly Buffer[], fault: Misbehaviour): void {
  const bytes = Buffer.concat(chunks)
  switch (fault.type) {
    case 'cut':
      response.write(bytes.subarray(0, fault.afterBytes), () => response.socket?.resetAndDestroy())
      return
    case 'slow':
      void sendSlowly(response, bytes, fault)
      return
    case 'garbage':
      response.end(fault.bytes)
      return
    default:
      throw new Error(`Cannot do ${fault.type} to a list`)
  }
}

async function sendSlowly(
  response: ServerResponse,
  bytes: Buffer,
  { pieceBytes, pauseMs }: { readonly pieceBytes: number; readonly pauseMs: number },
): Promise<void> {
  for (let at = 0; at < bytes.length && !response.destroyed; at += pieceBytes) {
    response.write(bytes.subarray(at, at + pieceBytes))
    await new Promise((resolve) => setTimeout(resolve, pauseMs))
  }
  response.end()
}
