import { asBytes } from '../lib/ip.ts'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { LITTLE_ENDIAN } from '../lib/endian.ts'
import { MAX_ATTRIBUTE, Writer } from './writer.ts'

const hex = (writer: Writer) => Buffer.from(writer.written()).toString('hex')

describe('Writer', () => {
  it('fills in lengths and pads to four bytes', () => {
    const writer = new Writer()
    writer.beginNested(3)
    writer.begin(1)
    writer.raw(asBytes('abcde'))
    writer.end()
    writer.begin(2)
    writer.u8(7)
    writer.end()
    writer.end()
    const expected = ['1800 0380', '0900 0100', '6162636465 000000', '0500 0200', '07 000000']
    if (LITTLE_ENDIAN) expect(hex(writer)).toBe(expected.join('').replaceAll(' ', ''))
  })

  it('writes integers in the byte order of their name', () => {
    const writer = new Writer()
    writer.be16(0x0102)
    writer.be32(0xfffefdfc)
    writer.be64(0x0102030405060708n)
    writer.ne16(0x0102)
    writer.ne32(0x01020304)
    const host = LITTLE_ENDIAN ? '020104030201' : '010201020304'
    expect(hex(writer)).toBe(`0102fffefdfc0102030405060708${host}`)
  })

  it('gives a message its length, padding included', () => {
    const writer = new Writer()
    writer.beginMessage(0x0a01, 5)
    writer.u8(1)
    writer.endMessage()
    expect(writer.length).toBe(20)
    expect(writer.view.getUint32(0, LITTLE_ENDIAN)).toBe(20)
    expect(writer.view.getUint16(4, LITTLE_ENDIAN)).toBe(0x0a01)
    expect(writer.view.getUint16(6, LITTLE_ENDIAN)).toBe(5)
  })

  it('keeps what was written when it grows', () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: 'binary-ascii', maxLength: 300 })), (texts) => {
        const writer = new Writer(8)
        for (const text of texts) writer.raw(asBytes(text))
        expect(Buffer.from(writer.written()).toString('latin1')).toBe(texts.join(''))
      }),
    )
  })

  it('writes zeros as padding into memory that was used before', () => {
    const writer = new Writer()
    writer.raw(asBytes('\xff'.repeat(64)))
    writer.reset()
    writer.begin(1)
    writer.u8(1)
    writer.end()
    expect([...writer.written().subarray(5)]).toEqual([0, 0, 0])
  })

  it('end() accepts the longest attribute and throws past it', () => {
    const longest = new Writer()
    longest.begin(1)
    longest.raw(asBytes('x'.repeat(MAX_ATTRIBUTE - 4)))
    longest.end()
    expect(longest.view.getUint16(0, LITTLE_ENDIAN)).toBe(MAX_ATTRIBUTE)

    const tooLong = new Writer()
    tooLong.beginNested(9)
    tooLong.raw(asBytes('x'.repeat(MAX_ATTRIBUTE - 3)))
    expect(() => tooLong.end()).toThrow(
      'Cannot write attribute 9: it is 65536 bytes long, and 65535 is the most that fits',
    )
  })

  it('end() throws when nothing was begun', () => {
    expect(() => new Writer().end()).toThrow('Cannot end: nothing was begun')
  })

  it('reset() gives back a buffer that had to grow beyond what is kept', () => {
    const writer = new Writer(16)
    writer.raw(asBytes('x'.repeat(5000)))
    const grown = writer.bytes.length
    writer.reset(grown)
    expect(writer.bytes.length).toBe(grown)
    writer.reset(grown - 1)
    expect(writer.bytes.length).toBe(16)
    expect(writer.length).toBe(0)
  })
})
