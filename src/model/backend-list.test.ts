import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { formatIp, asBytes, bytesOf } from '../lib/ip.ts'
import { backendId, BackendList } from './backend-list.ts'
import type { Backend } from './types.ts'

const address4 = fc.tuple(fc.nat(255), fc.nat(255), fc.nat(255), fc.nat(255)).map((bytes) => bytes.join('.'))
const address6 = fc.uint8Array({ minLength: 15, maxLength: 15 }).map((bytes) => formatIp(bytesOf(0xfd, ...bytes)))

const backendOf = (address: fc.Arbitrary<string>) =>
  fc
    .record({
      ip: address,
      port: fc.integer({ min: 1, max: 65535 }),
      isLocal: fc.boolean(),
      mayBeLocal: fc.constantFrom(true, undefined),
      weight: fc.oneof(fc.constant(undefined), fc.integer({ min: 2, max: 65535 }), fc.constant(0)),
    })
    .map((backend) => backend as Backend)

describe.each([
  ['IPv4', address4],
  ['IPv6', address6],
])('BackendList of %s', (_, address) => {
  const backends = fc.array(backendOf(address))

  test('gives back what it was made of', () => {
    fc.assert(
      fc.property(backends, (given) => {
        const list = BackendList.of(given)
        expect([...list]).toEqual(given)
        expect(list).toHaveLength(given.length)
        expect(JSON.parse(JSON.stringify(list))).toEqual(JSON.parse(JSON.stringify(given)))
        given.forEach(({ ip, port, isLocal, mayBeLocal }, i) => {
          expect([formatIp(list.addressAt(i)), list.portAt(i)]).toEqual([ip, port])
          expect(list.canBeLocalAt(i)).toBe(isLocal || mayBeLocal === true)
        })
      }),
    )
  })

  test('finds records where they are, and nowhere else', () => {
    fc.assert(
      fc.property(backends, (given) => {
        const list = BackendList.of(given)
        const records = list.allRecords()
        for (const record of records) expect(list.placeOf(record)).toBe(records.indexOf(record))
        given.forEach(({ port }, i) => {
          const address = list.addressAt(i)
          expect(list.has(address, port)).toBe(true)
          const other = port ^ 1
          expect(list.has(address, other)).toBe(
            given.some((each, j) => each.port === other && list.addressAt(j) === address),
          )
        })
        const [first, ...rest] = records
        const others = list.rearranged(asBytes(rest.join('')))
        if (first !== undefined && !rest.includes(first)) expect(others.placeOf(first)).toBe(-1)
      }),
    )
  })

  test('tells the places at which another list has another address or port', () => {
    const long = fc.array(backendOf(address), { minLength: 120, maxLength: 200 })
    fc.assert(
      fc.property(long, fc.nat(119), fc.constantFrom('port', 'weight', 'end'), (given, at, what) => {
        const list = BackendList.of(given)
        const other = given.map((each, i) => (i === at && what === 'port' ? { ...each, port: each.port ^ 1 } : each))
        if (what === 'weight') other[at] = { ...other[at]!, weight: 7 }
        if (what === 'end') other.length = at
        const expected = given.flatMap((each, i) => {
          return each.ip === other[i]?.ip && each.port === other[i]?.port ? [] : i
        })
        expect(list.placesUnlike(BackendList.of(other))).toEqual(expected)
      }),
    )
    const list = BackendList.of([{ ip: '10.0.0.1', port: 80, isLocal: true }])
    expect(list.placesUnlike(undefined)).toEqual([0])
  })
})

test('a backend is reported from others by its address and port', () => {
  const idOf = (backend: Backend) => backendId(BackendList.of([backend]).recordAt(0))
  const backend: Backend = { ip: '10.0.0.1', port: 80, isLocal: true }
  expect(idOf({ ...backend, isLocal: false, weight: 9 })).toBe(idOf(backend))
  expect(idOf({ ...backend, port: 81 })).not.toBe(idOf(backend))
  expect(idOf({ ...backend, ip: '10.0.0.2' })).not.toBe(idOf(backend))
})
