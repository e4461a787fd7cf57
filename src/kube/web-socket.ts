// The frames of a WebSocket (RFC 6455), as a client needs them. Node's own WebSocket takes neither a client certificate nor an
// authority, and costs 13 MB.

import { Buffer } from 'node:buffer'
import { createHash, randomBytes } from 'node:crypto'

export const opcodes = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const

const ACCEPT_SUFFIX = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'
const FINAL = 0x80
const MASKED = 0x80
const LENGTH_16 = 126
const LENGTH_64 = 127
/** A server that announces more is not one that runs commands. */
const MAX_MESSAGE = 64 * 2 ** 20

export interface Message {
  readonly opcode: number
  readonly payload: Buffer
}

export class FrameError extends Error {
  override readonly name = 'FrameError'
}

/** What a server has to answer to this key. */
export function acceptKey(key: string): string {
  return createHash('sha1')
    .update(key + ACCEPT_SUFFIX)
    .digest('base64')
}

/** A whole message in one frame. Clients have to mask it. */
export function encodeFrame(opcode: number, payload: Uint8Array, mask: Uint8Array = randomBytes(4)): Buffer {
  const { length } = payload
  const extended = length < LENGTH_16 ? 0 : length < 2 ** 16 ? 2 : 8
  const frame = Buffer.alloc(2 + extended + 4 + length)
  frame[0] = FINAL | opcode
  frame[1] = MASKED | (extended === 0 ? length : extended === 2 ? LENGTH_16 : LENGTH_64)
  if (extended === 2) frame.writeUInt16BE(length, 2)
  if (extended === 8) frame.writeBigUInt64BE(BigInt(length), 2)
  const start = 2 + extended + 4
  frame.set(mask, start - 4)
  for (let i = 0; i < length; i++) frame[start + i] = payload[i]! ^ mask[i & 3]!
  return frame
}

/** Puts messages together from what a server sends. */
export class MessageReader {
  #rest: Buffer = Buffer.alloc(0)
  #parts: Buffer[] = []
  #opcode = 0

  /** The messages that are complete with these bytes. Throws FrameError. */
  push(bytes: Buffer): Message[] {
    this.#rest = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes])
    const messages: Message[] = []
    for (let frame = this.#next(); frame !== undefined; frame = this.#next()) {
      if (frame.opcode >= opcodes.close) messages.push(frame)
      else if (this.#add(frame)) {
        messages.push({ opcode: this.#opcode, payload: Buffer.concat(this.#parts) })
        this.#parts = []
      }
    }
    return messages
  }

  #add({ opcode, payload, isFinal }: Message & { readonly isFinal: boolean }): boolean {
    if (opcode !== opcodes.continuation) this.#opcode = opcode
    this.#parts.push(payload)
    return isFinal
  }

  #next(): (Message & { readonly isFinal: boolean }) | undefined {
    const bytes = this.#rest
    if (bytes.length < 2) return undefined
    const short = bytes[1]! & 0x7f
    const extended = short === LENGTH_16 ? 2 : short === LENGTH_64 ? 8 : 0
    const start = 2 + extended
    if (bytes.length < start) return undefined
    if ((bytes[1]! & MASKED) !== 0) throw new FrameError('Cannot read a WebSocket frame: a server must not mask it')
    const length = extended === 0 ? short : extended === 2 ? bytes.readUInt16BE(2) : Number(bytes.readBigUInt64BE(2))
    if (length > MAX_MESSAGE) throw new FrameError(`Cannot read a WebSocket frame: it has ${length} bytes`)
    if (bytes.length < start + length) return undefined
    this.#rest = bytes.subarray(start + length)
    const isFinal = (bytes[0]! & FINAL) !== 0
    return { opcode: bytes[0]! & 0x0f, payload: bytes.subarray(start, start + length), isFinal }
  }
}
