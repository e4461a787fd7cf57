// Reads a response that may stall, break off, or never end.

import { Buffer } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import type { Clock, Timer } from '../lib/clock.ts'
import { PausedReading } from './pause-reading.ts'

const MAX_START = 64 * 1024
const START_TIMEOUT_MS = 5000

export interface ReadOptions {
  readonly clock: Clock
  /** After this silence the server counts as gone. */
  readonly idleTimeoutMs: number
  readonly onChunk: (chunk: Buffer) => void
  /** In how many milliseconds what was read will be written; nothing is read until shortly before. */
  readonly nextWriteMs?: (() => number | undefined) | undefined
}

/** Nothing came for too long. */
export class IdleTimeoutError extends Error {
  override readonly name = 'IdleTimeoutError'
}

/**
 * Resolves at the proper end of the response. Rejects when the connection broke, after too long a silence, and with an error of
 * onChunk; the connection is then closed.
 */
export function readBody(response: IncomingMessage, options: ReadOptions): Promise<void> {
  const { clock, idleTimeoutMs, onChunk, nextWriteMs } = options
  return new Promise((resolve, reject) => {
    let lastMs = clock.monotonicNow()
    let timer: Timer
    const pausing = nextWriteMs && new PausedReading(response.socket, { clock, nextWriteMs })
    const settle = (error: Error | undefined): void => {
      timer.cancel()
      pausing?.close()
      if (error === undefined) return resolve()
      response.destroy()
      reject(error)
    }
    // One timer that checks the time of the last chunk when it fires: not a new one for each chunk.
    const watchSilence = (waitMs: number): void => {
      timer = clock.setTimeout(() => {
        const leftMs = lastMs + idleTimeoutMs - clock.monotonicNow()
        if (leftMs > 0) return watchSilence(leftMs)
        settle(new IdleTimeoutError(`Cannot read response: nothing came for ${idleTimeoutMs / 1000} s`))
      }, waitMs)
    }
    watchSilence(idleTimeoutMs)
    response.on('data', (chunk: Buffer) => {
      lastMs = clock.monotonicNow()
      try {
        onChunk(chunk)
        pausing?.read(chunk.length)
      } catch (error) {
        settle(error instanceof Error ? error : new Error(String(error)))
      }
    })
    response.once('end', () => settle(undefined))
    response.once('error', settle)
    response.once('close', () => settle(new Error('Cannot read response: connection closed')))
  })
}

/** The beginning of a response, as far as it comes in time: for error messages. */
export async function readStart(response: IncomingMessage, clock: Clock): Promise<Buffer> {
  const chunks: Buffer[] = []
  let length = 0
  const onChunk = (chunk: Buffer): void => {
    chunks.push(chunk)
    length += chunk.length
    if (length > MAX_START) throw new Error('Cannot read response: too long')
  }
  try {
    await readBody(response, { clock, idleTimeoutMs: START_TIMEOUT_MS, onChunk })
  } catch {
    // The text so far explains more than the reason why it ended.
  }
  return Buffer.concat(chunks)
}
