import { expect, test } from 'vitest'
import { acceptKey, encodeFrame, FrameError, MessageReader, opcodes } from './web-socket.ts'

/** As a server sends it: the frame without its mask. */
function fromServer(opcode: number, payload: Buffer, isFinal = true): Buffer {
  const frame = encodeFrame(opcode, payload, Buffer.alloc(4))
  const maskAt = frame.length - payload.length - 4
  const bare = Buffer.concat([frame.subarray(0, maskAt), payload])
  bare[1]! &= 0x7f
  if (!isFinal) bare[0]! &= 0x7f
  return bare
}

test('the answer to a key is that of RFC 6455', () => {
  expect(acceptKey('dGhlIHNhbXBsZSBub25jZQ==')).toBe('s3pPLMBiTxaQ9kYGzzhZRbK+xOo=')
})

test('a client masks what it sends', () => {
  // The example of RFC 6455, 5.7.
  const frame = encodeFrame(opcodes.text, Buffer.from('Hello'), Buffer.from('37fa213d', 'hex'))
  expect(frame.toString('hex')).toBe('818537fa213d7f9f4d5158')
})

test.each([0, 1, 125, 126, 65_535, 65_536, 200_000])('a message of %i bytes is read, however it is cut', (length) => {
  const payload = Buffer.alloc(length, 'x')
  const bytes = Buffer.concat([fromServer(opcodes.binary, payload), fromServer(opcodes.ping, Buffer.from('p'))])
  for (const size of [1000, 7, bytes.length]) {
    const reader = new MessageReader()
    const messages = []
    for (let at = 0; at < bytes.length; at += size) messages.push(...reader.push(bytes.subarray(at, at + size)))
    expect(messages.map(({ opcode, payload: read }) => [opcode, read.length])).toEqual([
      [opcodes.binary, length],
      [opcodes.ping, 1],
    ])
  }
})

test('parts of a message are put together, with a ping between them', () => {
  const reader = new MessageReader()
  const bytes = [
    fromServer(opcodes.binary, Buffer.from('one '), false),
    fromServer(opcodes.ping, Buffer.from('?')),
    fromServer(opcodes.continuation, Buffer.from('two')),
  ]
  const messages = reader.push(Buffer.concat(bytes))
  expect(messages.map(({ opcode, payload }) => [opcode, payload.toString()])).toEqual([
    [opcodes.ping, '?'],
    [opcodes.binary, 'one two'],
  ])
})

test('what no server may send is refused', () => {
  const huge = Buffer.alloc(10)
  huge[0] = 0x82
  huge[1] = 127
  huge.writeBigUInt64BE(2n ** 40n, 2)
  expect(() => new MessageReader().push(huge)).toThrow(FrameError)
  expect(() => new MessageReader().push(encodeFrame(opcodes.text, Buffer.from('x')))).toThrow(FrameError)
})
