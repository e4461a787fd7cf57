import { describe, expect, it } from 'vitest'
import { acceptKey, encodeFrame, FrameReader, opcodes, WebSocketError } from './websocket-frames.ts'

/** A frame as a client sends it. */
function masked(payload: Buffer, options: { opcode?: number; isLast?: boolean } = {}): Buffer {
  const { opcode = opcodes.binary, isLast = true } = options
  const frame = encodeFrame(opcode, payload)
  const head = frame.subarray(0, frame.length - payload.length)
  const mask = Buffer.from([1, 2, 3, 4])
  head[0] = (isLast ? 0x80 : 0) | opcode
  head[1] = head[1]! | 0x80
  return Buffer.concat([head, mask, payload.map((byte, i) => byte ^ mask[i % 4]!)])
}

describe('FrameReader', () => {
  it.each([0, 1, 125, 126, 65_535, 65_536])('reads a frame of %d bytes, however it is cut', (length) => {
    const payload = Buffer.alloc(length, 'x')
    const bytes = masked(payload)
    const reader = new FrameReader()
    const cut = Math.min(3, bytes.length - 1)
    expect(reader.read(bytes.subarray(0, cut))).toEqual([])
    expect(reader.read(bytes.subarray(cut))).toEqual([{ opcode: opcodes.binary, isLast: true, payload }])
  })

  it('reads several at once, and parts', () => {
    const bytes = Buffer.concat([
      masked(Buffer.from('a'), { isLast: false }),
      masked(Buffer.from('b'), { opcode: opcodes.continuation }),
      masked(Buffer.from('p'), { opcode: opcodes.ping }),
    ])
    const frames = new FrameReader().read(bytes)
    expect(frames.map(({ opcode, isLast, payload }) => [opcode, isLast, payload.toString()])).toEqual([
      [opcodes.binary, false, 'a'],
      [opcodes.continuation, true, 'b'],
      [opcodes.ping, true, 'p'],
    ])
  })

  it.each([
    ['unmasked', encodeFrame(opcodes.binary, Buffer.from('a'))],
    ['with an extension', Buffer.concat([Buffer.of(0xc2), masked(Buffer.from('a')).subarray(1)])],
    ['too large', Buffer.from('82ff000000ffffffffff00000000', 'hex')],
  ])('refuses a frame that is %s', (_, bytes) => {
    expect(() => new FrameReader().read(bytes)).toThrow(WebSocketError)
  })
})

it('acceptKey() answers the key of RFC 6455', () => {
  expect(acceptKey('dGhlIHNhbXBsZSBub25jZQ==')).toBe('s3pPLMBiTxaQ9kYGzzhZRbK+xOo=')
})
