import { describe, expect, test } from 'vitest'
import * as fc from 'fast-check'
import { draining, endpoint, slice } from '../../test/support/kube-objects.ts'
import type { EndpointSlice } from '../kube/types.ts'
import { countLocalReady, mergeEndpoints, portKey, portSources } from './endpoints.ts'
import type { Endpoint } from './endpoints.ts'
import { parseSlice } from './slice-record.ts'
import type { SliceRecord } from './slice-record.ts'

function records(...slices: EndpointSlice[]): SliceRecord[] {
  return slices.flatMap((object, i) => {
    const keys = { key: `default/web-${i}`, service: 'default/web' }
    return parseSlice(object, keys, { family: 4, problems: [] }) ?? []
  })
}

function merged(slices: EndpointSlice[], name = '', protocol: 'TCP' | 'UDP' = 'TCP'): Endpoint[] {
  return mergeEndpoints(portSources(records(...slices)).get(portKey(name, protocol)) ?? [], 'node-a')
}

const allOf = ({ ip, port, isLocal, nodeName, ready, serving, terminating }: Endpoint) => {
  return { ip, port, isLocal, nodeName, ready, serving, terminating }
}
const texts = (endpoints: Endpoint[]) => endpoints.map(({ ip, port }) => `${ip}:${port}`)

describe('mergeEndpoints()', () => {
  test('puts several slices together, each endpoint once, in order of address and port', () => {
    const slices = [
      slice(['10.1.0.3', '10.1.0.1']),
      slice(['10.1.0.2', '10.1.0.1']),
      slice(['10.1.0.1'], { ports: [{ port: 80 }] }),
    ]
    expect(texts(merged(slices))).toEqual(['10.1.0.1:80', '10.1.0.1:8080', '10.1.0.2:8080', '10.1.0.3:8080'])
  })

  test('takes the ports of the right name and protocol only', () => {
    const slices = [
      slice(['10.1.0.1'], { ports: [{ name: 'a' }, { name: 'b', port: 9 }, { name: 'b', protocol: 'UDP', port: 7 }] }),
    ]
    expect(texts(merged(slices, 'b'))).toEqual(['10.1.0.1:9'])
    expect(texts(merged(slices, 'b', 'UDP'))).toEqual(['10.1.0.1:7'])
    expect(texts(merged(slices, ''))).toEqual([])
  })

  test('believes the slice in which the endpoint is not terminating', () => {
    const leaving = slice([{ address: '10.1.0.1', ...draining }])
    const running = slice([{ address: '10.1.0.1', nodeName: 'node-a' }])
    for (const slices of [
      [leaving, running],
      [running, leaving],
    ]) {
      expect(merged(slices)).toMatchObject([{ ready: true, terminating: false, isLocal: true }])
    }
  })

  test('calls an endpoint local only when it names this node', () => {
    const found = merged([
      slice([{ address: '10.1.0.1', nodeName: 'node-a' }, { address: '10.1.0.2', nodeName: 'NODE-A' }, '10.1.0.3']),
    ])
    expect(found.map(({ isLocal }) => isLocal)).toEqual([true, false, false])
    expect(
      mergeEndpoints(portSources(records(slice(['10.1.0.3']))).get(portKey('', 'TCP')) ?? [], '')[0]?.isLocal,
    ).toBe(false)
  })

  test('does not depend on the order of slices or of their endpoints', () => {
    const address = fc.integer({ min: 1, max: 6 }).map((n) => `10.1.0.${n}`)
    const wish = fc.record({ address, ready: fc.boolean(), serving: fc.boolean(), terminating: fc.boolean() })
    const slices = fc.array(
      fc
        .record({ endpoints: fc.array(wish), port: fc.constantFrom(80, 81) })
        .map(({ endpoints, port }) => slice(endpoints, { ports: [{ port }] })),
      { maxLength: 4 },
    )
    fc.assert(
      fc.property(slices, (given) => {
        const reversed = given.toReversed().map((object) => ({ ...object, endpoints: object.endpoints.toReversed() }))
        expect(merged(reversed).map(allOf)).toEqual(merged(given).map(allOf))
      }),
    )
  })

  test('returns each address and port of the slices exactly once', () => {
    const address = fc.integer({ min: 1, max: 6 }).map((n) => `10.1.0.${n}`)
    const slices = fc.array(
      fc.array(address).map((addresses) => slice(addresses.map((a) => endpoint(a)))),
      { maxLength: 4 },
    )
    fc.assert(
      fc.property(slices, (given) => {
        const expected = new Set(given.flatMap(({ endpoints }) => endpoints.map((e) => `${e.address}:8080`)))
        expect(texts(merged(given))).toEqual([...expected].sort())
      }),
    )
  })
})

describe('countLocalReady()', () => {
  test('counts addresses, not ports, of ready endpoints on this node', () => {
    const here = { nodeName: 'node-a' }
    const slices = [
      slice([{ address: '10.1.0.1', ...here }, { address: '10.1.0.2', ...here, ...draining }, '10.1.0.3'], {
        ports: [{ name: 'a' }, { name: 'b', port: 9 }],
      }),
      slice([
        { address: '10.1.0.1', ...here },
        { address: '10.1.0.4', ...here },
      ]),
    ]
    expect(countLocalReady(portSources(records(...slices)).values(), 'node-a')).toBe(2)
  })
})
