import { readFileSync } from 'node:fs'
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { json, protobuf, type Encoding } from '../../../test/support/api-server/encodings.ts'
import type { ApiObject } from '../../../test/support/api-server/objects.ts'
import { endpointSlices } from '../objects/endpoint-slice.ts'
import { services } from '../objects/service.ts'
import type { Resource } from '../resource.ts'
import type { Service } from '../types.ts'
import { watchParserFor } from './codec.ts'
import { StringPool } from './string-pool.ts'
import type { WatchFrame } from './watch-parser.ts'

const pool = new StringPool()

function parse<T>(resource: Resource<T>, encoding: Encoding, pieces: readonly Buffer[]): WatchFrame<T>[] {
  const parser = watchParserFor(encoding.watchContentType, resource, pool)
  const frames: WatchFrame<T>[] = []
  for (const piece of pieces) parser.push(piece, frames)
  return frames
}

function aService(name: string, resourceVersion: string): ApiObject {
  return { apiVersion: 'v1', kind: 'Service', metadata: { name, namespace: 'default', resourceVersion } }
}

function sketch(frame: WatchFrame<unknown>): string {
  switch (frame.type) {
    case 'set':
    case 'delete':
      return `${frame.type} ${frame.key} ${frame.resourceVersion}`
    case 'bookmark':
      return `bookmark ${frame.resourceVersion}`
    case 'error':
      return `error ${frame.status.code} ${frame.status.reason}`
    case 'malformed':
      return 'malformed'
  }
}

describe.each([json, protobuf])('WatchParser of $watchContentType', (encoding) => {
  const stream = Buffer.concat([
    encoding.frame('ADDED', aService('a', '1')),
    encoding.frame('MODIFIED', aService('a', '2')),
    encoding.frame('BOOKMARK', aService('', '3')),
    encoding.frame('DELETED', aService('a', '4')),
    encoding.errorFrame({ code: 410, reason: 'Expired', message: 'too old' }),
  ])
  const expected = ['set default/a 1', 'set default/a 2', 'bookmark 3', 'delete default/a 4', 'error 410 Expired']

  test('push() says every type of event', () => {
    expect(parse(services, encoding, [stream]).map(sketch)).toEqual(expected)
  })

  test('push() does not depend on where the bytes are cut', () => {
    fc.assert(
      fc.property(fc.array(fc.nat({ max: stream.length }), { maxLength: 8 }), (cuts) => {
        const borders = [0, ...cuts.sort((a, b) => a - b), stream.length]
        const pieces = borders.slice(1).map((end, index) => stream.subarray(borders[index], end))
        expect(parse(services, encoding, pieces).map(sketch)).toEqual(expected)
      }),
    )
  })

  test('pendingBytes says that a frame is incomplete', () => {
    const parser = watchParserFor(encoding.watchContentType, services, pool)
    const frames: WatchFrame<Service>[] = []
    parser.push(stream.subarray(0, 10), frames)
    expect([frames.length, parser.pendingBytes]).toEqual([0, 10])
    parser.push(stream.subarray(10), frames)
    expect(parser.pendingBytes).toBe(0)
  })

  test('push() gives the good frames before a malformed one, and nothing after it', () => {
    const garbage = Buffer.from('\0\0\0\x05garb\n{"type"\n')
    const bytes = Buffer.concat([encoding.frame('ADDED', aService('a', '1')), garbage, stream])
    expect(parse(services, encoding, [bytes]).map(sketch)).toEqual(['set default/a 1', 'malformed'])
  })

  test('an event of an unknown type, of another kind, or without a name is malformed', () => {
    const node: ApiObject = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'a' } }
    for (const frame of [
      encoding.frame('RENAMED', aService('a', '1')),
      encoding.frame('ADDED', node),
      encoding.frame('ADDED', aService('', '1')),
    ]) {
      expect(parse(services, encoding, [frame]).map(sketch)).toEqual(['malformed'])
    }
  })

  test('frames recorded from a kube-apiserver are read', () => {
    const file = encoding === protobuf ? 'endpointslices-watch.pb' : 'endpointslices-watch.json.txt'
    const bytes = readFileSync(new URL(`../objects/testdata/${file}`, import.meta.url))
    const frames = parse(endpointSlices, encoding, [bytes])
    expect(frames.map((frame) => (frame.type === 'set' ? frame.key : frame))).toEqual([
      'fixture/everything-v4',
      'fixture/everything-v6',
      'fixture/orphan',
    ])
  })
})

test('a protobuf frame that announces more than any object has is malformed', () => {
  const bytes = Buffer.from([0x7f, 0xff, 0xff, 0xff, 1, 2, 3])
  expect(parse(services, protobuf, [bytes]).map(sketch)).toEqual(['malformed'])
})

describe('a frame without end', () => {
  const chunk = Buffer.alloc(64 * 1024, 'x')

  test('is malformed in JSON before it takes much memory', () => {
    const parser = watchParserFor(json.watchContentType, services, pool)
    const frames: WatchFrame<Service>[] = []
    let pushed = 0
    for (; frames.length === 0 && pushed < 1000; pushed++) parser.push(chunk, frames)
    expect(frames.map(sketch)).toEqual(['malformed'])
    expect(pushed * chunk.length).toBeLessThan(17 * 1024 * 1024)
  })

  test('is malformed in protobuf as soon as its length is there', () => {
    const length = Buffer.alloc(4)
    length.writeUInt32BE(17 * 1024 * 1024)
    expect(parse(services, protobuf, [length]).map(sketch)).toEqual(['malformed'])
  })
})
