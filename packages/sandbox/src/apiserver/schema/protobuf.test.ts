import { describe, expect, it } from 'vitest'
import * as fc from 'fast-check'
import { decodeEnvelope, decodeMessage } from './protobuf-decode.ts'
import { decodeObject } from './decode.ts'
import { encodeEnvelope, encodeMessage } from './protobuf-encode.ts'
import { messageNamed } from './schema.ts'
import { ProtoWriter } from '../../../../../src/lib/proto-writer.ts'
import type { Json, JsonObject } from '../json.ts'
import type { FieldType, Message } from './schema.ts'
import { runs } from '../../../../../test/support/runs.ts'

describe('encodeMessage() and decodeMessage()', () => {
  it.each(['core.Service', 'core.Pod', 'core.Node', 'discovery.EndpointSlice', 'apps.Deployment', 'core.Event'])(
    'bring every %s back as it was',
    (name) => {
      const message = messageNamed(name)
      fc.assert(
        fc.property(arbitraryMessage(message, 3), (source) => {
          const object = decodeObject(message, source).value
          const back = decodeMessage(message, encodeMessage(message, object))
          expect(decodeObject(message, back).value).toEqual({ ...object, kind: '', apiVersion: '' })
        }),
        runs(60),
      )
    },
  )

  it('leave out the zeros that Go writes for fields that are not set', () => {
    // ServiceSpec { type: "", healthCheckNodePort: 0, publishNotReadyAddresses: false }, as a Go client sends it.
    const writer = new ProtoWriter()
    writer.int(13, 0)
    writer.int(12, 0)
    writer.string(4, '')
    expect(decodeMessage(messageNamed('core.ServiceSpec'), writer.finish())).toEqual({})
  })
})

describe('encodeEnvelope()', () => {
  it('is what decodeEnvelope() opens', () => {
    const type = { apiVersion: 'apps/v1', kind: 'Deployment' }
    const bytes = encodeEnvelope(type, Uint8Array.of(1, 2, 3))
    expect(bytes.toString('latin1', 0, 4)).toBe('k8s\0')
    const { type: back, raw } = decodeEnvelope(bytes)
    expect(back).toEqual(type)
    expect([...raw]).toEqual([1, 2, 3])
  })

  it('is not what just any bytes are', () => {
    expect(() => decodeEnvelope(Buffer.from('{}'))).toThrow('does not begin with "k8s" and a zero byte')
  })
})

describe('ProtoWriter', () => {
  it.each([0, 1, 127, 128, 300, 2 ** 31, 2 ** 40])('writes %d as a varint', (value) => {
    const writer = new ProtoWriter(1)
    writer.varint(value)
    expect(readVarint(writer.finish())).toBe(BigInt(value))
  })

  it('writes a negative number in ten bytes', () => {
    const writer = new ProtoWriter()
    writer.varint(-1)
    expect([...writer.finish()]).toEqual([255, 255, 255, 255, 255, 255, 255, 255, 255, 1])
  })
})

function readVarint(bytes: Uint8Array): bigint {
  return bytes.reduceRight((value, byte) => (value << 7n) | BigInt(byte & 0x7f), 0n)
}

/** Values that a message of the schema can have, a few levels deep. */
function arbitraryMessage(message: Message, depth: number): fc.Arbitrary<JsonObject> {
  const entries = [...message.byName].map(([name, { type }]) => [
    name,
    fc.option(arbitraryValue(type, depth), { nil: undefined }),
  ])
  return fc
    .record(Object.fromEntries(entries) as Record<string, fc.Arbitrary<Json | undefined>>)
    .map(
      (record) => Object.fromEntries(Object.entries(record).filter(([, value]) => value !== undefined)) as JsonObject,
    )
}

function arbitraryValue(type: FieldType, depth: number): fc.Arbitrary<Json> {
  switch (type.kind) {
    case 'message':
      return depth === 0 ? fc.constant({}) : arbitraryMessage(type.message, depth - 1)
    case 'list':
      // An empty list and none are the same bytes.
      return fc.array(arbitraryValue(type.of, depth), { minLength: 1, maxLength: 2 })
    case 'map':
      return fc.dictionary(fc.string({ minLength: 1, maxLength: 8 }), arbitraryValue(type.of, depth), {
        minKeys: 1,
        maxKeys: 2,
      })
    case 'scalar':
      return scalars[type.scalar]
  }
}

const time = fc.integer({ min: 1, max: 2 ** 31 }).map((seconds) => new Date(seconds * 1000))

const scalars = {
  string: fc.string({ unit: 'grapheme', maxLength: 12 }),
  bool: fc.boolean(),
  int32: fc.integer(),
  int64: fc.integer({ min: -(2 ** 31), max: 2 ** 50 }),
  float64: fc.double({ noNaN: true, noDefaultInfinity: true }),
  bytes: fc.uint8Array({ maxLength: 9 }).map((bytes) => Buffer.from(bytes).toString('base64')),
  Time: time.map((date) => `${date.toISOString().slice(0, 19)}Z`),
  MicroTime: time.map((date) => `${date.toISOString().slice(0, 19)}.000250Z`),
  Quantity: fc.constantFrom('1', '100m', '64Mi'),
  IntOrString: fc.oneof(fc.integer(), fc.string({ minLength: 1, maxLength: 5 })),
  Raw: fc.constant({ a: [1, 'b', null] }),
  Fields: fc.constant({ 'f:spec': {} }),
} satisfies Record<string, fc.Arbitrary<Json>>
