import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { ProtoWriter } from '../../lib/proto-writer.ts'
import { DecodeError } from './decode-error.ts'
import { ProtoReader } from './proto-reader.ts'
import { StringPool } from './string-pool.ts'

const pool = new StringPool()

function read(bytes: Buffer): ProtoReader {
  return new ProtoReader(bytes, pool)
}

test('ProtoReader.int() reads what was written', () => {
  const writer = new ProtoWriter()
  const integers = fc.oneof(fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 }), fc.maxSafeNat())
  fc.assert(
    fc.property(integers, (value) => {
      writer.reset()
      writer.int(9, value)
      const bytes = writer.finish()
      const reader = read(bytes)
      expect(reader.field(bytes.length)).toBe(9)
      expect(reader.int()).toBe(value)
    }),
  )
})

test('ProtoReader.skip() steps over every type of field', () => {
  const integer = [0x08, 0x80, 0x01]
  const fixed64 = [0x11, 1, 2, 3, 4, 5, 6, 7, 8]
  const text = [0x1a, 2, 0xaa, 0xbb]
  const fixed32 = [0x25, 1, 2, 3, 4]
  const bytes = Buffer.from([...integer, ...fixed64, ...text, ...fixed32])
  const reader = read(bytes)
  const fields: number[] = []
  while (reader.pos < bytes.length) {
    fields.push(reader.field(bytes.length))
    reader.skip(bytes.length)
  }
  expect(fields).toEqual([1, 2, 3, 4])
})

test.each([
  ['a field number of zero', [0x02, 0]],
  ['an unknown wire type', [0x0b]],
  ['a length past the end', [0x0a, 5, 1]],
  ['an integer that never ends', [0x08, ...Array.from({ length: 11 }, () => 0xff)]],
  ['an integer that is cut', [0x08, 0xff]],
  ['a fixed field that is cut', [0x0d, 1, 2]],
])('ProtoReader throws a DecodeError for %s', (_, bytes) => {
  const reader = read(Buffer.from(bytes))
  expect(() => {
    reader.field(bytes.length)
    reader.skip(bytes.length)
  }).toThrow(DecodeError)
})

test('ProtoReader throws a DecodeError where a field has another type than expected', () => {
  const reader = read(Buffer.from([0x08, 1, 0x0a, 0]))
  reader.field(4)
  expect(() => reader.string()).toThrow(DecodeError)
  reader.skip(4)
  reader.field(4)
  expect(() => reader.int()).toThrow(DecodeError)
})
