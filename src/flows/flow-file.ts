// The flow log as a file of JSON lines. One older file is kept beside it: twice LARGEST bytes, and no more.

import { appendFile, rename, stat } from 'node:fs/promises'
import { type FlowRecord, formatFlowLine } from './flow-record.ts'
import type { FlowSink } from './flow-queue.ts'

export const LARGEST = 100_000_000

export interface FlowFileOptions {
  readonly path: string
  readonly node: string
  readonly largest?: number
}

/** The file is opened for each portion: what another program moves away is not written to any more. */
export function flowFile({ path, node, largest = LARGEST }: FlowFileOptions): FlowSink {
  return {
    name: path,
    async send(records: readonly FlowRecord[], leftOut: number): Promise<void> {
      const lines = records.map((record) => formatFlowLine(record, node))
      if (leftOut > 0)
        lines.push(
          JSON.stringify({ time: new Date().toISOString(), event: 'leftOut', observedBy: node, connections: leftOut }),
        )
      const text = lines.map((line) => `${line}\n`).join('')
      if ((await sizeOf(path)) + text.length > largest) await rename(path, `${path}.1`)
      await appendFile(path, text, { mode: 0o600 })
    },
  }
}

async function sizeOf(path: string): Promise<number> {
  try {
    return (await stat(path)).size
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return 0
    throw error
  }
}
