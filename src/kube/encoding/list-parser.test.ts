import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { json, protobuf } from '../../../test/support/api-server/encodings.ts'
import { RESOURCES, type ApiObject } from '../../../test/support/api-server/objects.ts'
import { services } from '../objects/service.ts'
import type { Decoded } from '../resource.ts'
import type { Service } from '../types.ts'
import { listParserFor } from './codec.ts'
import { DecodeError } from './decode-error.ts'
import type { ListMeta } from './list-parser.ts'
import { StringPool } from './string-pool.ts'

const pool = new StringPool()
const served = RESOURCES[0]
const encodings = [json, protobuf]

function aService(name: string, note: string = ''): ApiObject {
  return { kind: 'Service', metadata: { name, annotations: { 'service.note': note } }, spec: { ports: [{ port: 80 }] } }
}

function encode(
  encoding: (typeof encodings)[number],
  objects: readonly ApiObject[],
  continueToken: string = '',
): Buffer {
  const metadata = { resourceVersion: '42', ...(continueToken === '' ? {} : { continue: continueToken }) }
  return Buffer.concat(encoding.list(served, metadata, objects))
}

function decode(contentType: string, pieces: readonly Buffer[]): { meta: ListMeta; objects: Decoded<Service>[] } {
  const parser = listParserFor(contentType, services, pool)
  const objects: Decoded<Service>[] = []
  for (const piece of pieces) parser.push(piece, objects)
  return { meta: parser.finish(), objects }
}

describe.each(encodings)('ListParser of $contentType', (encoding) => {
  test('push() gives each object as soon as its last byte is there', () => {
    const parser = listParserFor(encoding.contentType, services, pool)
    const bytes = encode(encoding, [aService('first'), aService('second')])
    const end = bytes.indexOf('first') + 60
    const objects: Decoded<Service>[] = []
    parser.push(bytes.subarray(0, end), objects)
    const early = objects.length
    parser.push(bytes.subarray(end), objects)
    expect(early).toBeLessThan(2)
    expect(objects.map(({ key }) => key)).toEqual(['first', 'second'])
  })

  test('finish() returns the version and the token of the next page', () => {
    const { meta } = decode(encoding.contentType, [encode(encoding, [aService('a')], 'token')])
    expect(meta).toEqual({ resourceVersion: '42', continueToken: 'token' })
  })

  test('an empty list is a list', () => {
    expect(decode(encoding.contentType, [encode(encoding, [])]).objects).toEqual([])
  })

  test('the result does not depend on where the bytes are cut', () => {
    const notes = fc.array(fc.string({ unit: 'grapheme', maxLength: 30 }), { maxLength: 5 })
    fc.assert(
      fc.property(notes, fc.array(fc.nat(), { maxLength: 10 }), (texts, cuts) => {
        const bytes = encode(
          encoding,
          texts.map((note, index) => aService(`s${index}`, note)),
        )
        const borders = [0, ...cuts.map((cut) => cut % bytes.length).sort((a, b) => a - b), bytes.length]
        const pieces = borders.slice(1).map((end, index) => bytes.subarray(borders[index], end))
        expect(decode(encoding.contentType, pieces)).toEqual(decode(encoding.contentType, [bytes]))
      }),
    )
  })

  test('every single cut is noticed by finish() or push()', () => {
    const bytes = encode(encoding, [aService('first'), aService('second')])
    // JSON ends with a newline, protobuf with two empty fields: without those everything is still there.
    const complete = bytes.length - 4
    for (let end = 0; end < complete; end++) {
      expect(() => decode(encoding.contentType, [bytes.subarray(0, end)]), `cut at ${end}`).toThrow(DecodeError)
    }
  })

  test('a flipped bit never leads to anything but a DecodeError or other objects', () => {
    const bytes = encode(encoding, [aService('first'), aService('second')])
    for (let at = 0; at < bytes.length * 8; at++) {
      const broken = Buffer.from(bytes)
      broken[at >> 3]! ^= 1 << (at & 7)
      try {
        decode(encoding.contentType, [broken])
      } catch (error) {
        expect(error).toBeInstanceOf(DecodeError)
      }
    }
  })

  test('a list of another kind is refused', () => {
    const nodes = RESOURCES.find(({ kind }) => kind === 'Node')!
    const bytes = Buffer.concat(encoding.list(nodes, { resourceVersion: '1' }, []))
    expect(() => decode(encoding.contentType, [bytes])).toThrow('NodeList')
  })
})

test('listParserFor() refuses other media types', () => {
  expect(() => listParserFor('text/html', services, pool)).toThrow('text/html')
})

test('a JSON list may be indented, have its metadata last, and say null for no items', () => {
  const list = { items: [aService('a'), aService('b')], metadata: { resourceVersion: '7' } }
  const { meta, objects } = decode('application/json', [Buffer.from(JSON.stringify(list, null, 2))])
  expect(objects.map(({ key }) => key)).toEqual(['a', 'b'])
  expect(meta.resourceVersion).toBe('7')
  const empty = Buffer.from('{"metadata":{"resourceVersion":"7"},"items":null}')
  expect(decode('application/json; charset=utf-8', [empty]).objects).toEqual([])
})

test('a JSON list may have other lists before its items', () => {
  const text = '{"metadata":{"items":[1,{"x":"]"}],"resourceVersion":"7"},"items":[{"metadata":{"name":"a"}}]}'
  const { objects } = decode('application/json', [Buffer.from(text)])
  expect(objects.map(({ key }) => key)).toEqual(['a'])
})

describe('a list with a part that has no end', () => {
  const chunk = Buffer.alloc(64 * 1024, 'x')

  test.each(['{"items":[{"a":"', '{"kind":"', '{"items":[],"metadata":{"continue":"'])(
    'is refused in JSON after %s',
    (start) => {
      const parser = listParserFor(json.contentType, services, pool)
      parser.push(Buffer.from(start), [])
      const push17MB = () => {
        for (let i = 0; i < 17 * 16; i++) parser.push(chunk, [])
      }
      expect(push17MB).toThrow('a part of it is longer than 16777216 bytes')
    },
  )

  test('is refused in protobuf as soon as its length is there', () => {
    const parser = listParserFor(protobuf.contentType, services, pool)
    // The list, announced to be very long, and its first item: each a tag of 0x12 and a length.
    const raw = Buffer.from([0x12, 0xff, 0xff, 0xff, 0x7f, 0x12, 0xff, 0xff, 0xff, 0x0f])
    const start = Buffer.concat([Buffer.from('k8s\0'), raw])
    expect(() => parser.push(Buffer.concat([start, chunk]), [])).toThrow(
      /\d+ bytes were announced, the most is 16777216/,
    )
  })
})
