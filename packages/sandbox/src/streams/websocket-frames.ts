// The frames of a WebSocket (RFC 6455), as a server sees them: what comes is masked, what goes is not. Pure.

import { createHash } from 'node:crypto'

export const opcodes = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const

export interface Frame {
  readonly opcode: number
  /** Whether it is the last one of its message. */
  readonly isLast: boolean
  readonly payload: Buffer
}

/** A peer that breaks the rules, or asks for more than is offered. */
export class WebSocketError extends Error {
  override readonly name = 'WebSocketError'
}

/** No client of ours sends more at once; kubectl's messages have 32 KiB. */
const maxPayload = 16 * 2 ** 20
const acceptSuffix = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'

/** The answer to the key of a handshake, which shows that the server understood. */
export function acceptKey(key: string): string {
  return createHash('sha1').update(`${key}${acceptSuffix}`).digest('base64')
}

/** Cuts a stream of bytes into frames. */
export class FrameReader {
  #rest: Buffer = Buffer.alloc(0)

  /** The frames that are whole with these bytes. Throws a WebSocketError. */
  read(bytes: Buffer): Frame[] {
    this.#rest = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes])
    const frames: Frame[] = []
    for (;;) {
      const decoded = decodeFrame(this.#rest)
      if (decoded === undefined) return frames
      frames.push(decoded.frame)
      this.#rest = this.#rest.subarray(decoded.length)
    }
  }
}

function decodeFrame(bytes: Buffer): { readonly frame: Frame; readonly length: number } | undefined {
  if (bytes.length < 2) return undefined
  const [first = 0, second = 0] = bytes
  if ((first & 0x70) !== 0) throw new WebSocketError('a frame uses an extension that was not agreed on')
  if ((second & 0x80) === 0) throw new WebSocketError('a frame of the client is not masked')
  const short = second & 0x7f
  const lengthBytes = short === 127 ? 8 : short === 126 ? 2 : 0
  const head = 2 + lengthBytes + 4
  if (bytes.length < head) return undefined
  const length =
    lengthBytes === 8 ? Number(bytes.readBigUInt64BE(2)) : lengthBytes === 2 ? bytes.readUInt16BE(2) : short
  if (length > maxPayload) throw new WebSocketError(`a frame of ${length} bytes is larger than ${maxPayload}`)
  if (bytes.length < head + length) return undefined
  const mask = bytes.subarray(head - 4, head)
  const payload = Buffer.from(bytes.subarray(head, head + length))
  for (let i = 0; i < length; i++) payload[i] = payload[i]! ^ mask[i & 3]!
  return { frame: { opcode: first & 0x0f, isLast: (first & 0x80) !== 0, payload }, length: head + length }
}

/** A frame of the server, which is a whole message. */
export function encodeFrame(opcode: number, payload: Uint8Array): Buffer {
  const { length } = payload
  const lengthBytes = length > 0xffff ? 8 : length > 125 ? 2 : 0
  const head = Buffer.alloc(2 + lengthBytes)
  head[0] = 0x80 | opcode
  head[1] = lengthBytes === 8 ? 127 : lengthBytes === 2 ? 126 : length
  if (lengthBytes === 8) head.writeBigUInt64BE(BigInt(length), 2)
  if (lengthBytes === 2) head.writeUInt16BE(length, 2)
  return Buffer.concat([head, payload])
}
