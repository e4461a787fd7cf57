import { asBytes } from '../lib/ip.ts'
import { describe, expect, test } from 'vitest'
import * as fc from 'fast-check'
import { draining, finished } from '../../test/support/kube-objects.ts'
import type { Endpoint } from './endpoints.ts'
import { reachableEndpoints } from './topology.ts'

const node = { nodeName: 'node-a', zone: 'zone-a' }
const both = { cluster: true, local: true }
const local = { isLocal: true }

function ep(name: string, wish: Partial<Endpoint> = {}): Endpoint {
  const plain = { isLocal: false, nodeName: '', ready: true, serving: true, terminating: false, weight: 1 }
  return { ip: name, address: asBytes(name), port: 1, zoneHints: undefined, nodeHints: undefined, ...plain, ...wish }
}

function reach(endpoints: Endpoint[], uses = both, place: { nodeName: string; zone: string | undefined } = node) {
  const { cluster, local, anywhere } = reachableEndpoints(endpoints, uses, place)
  return { cluster: cluster.map(({ ip }) => ip), local: local.map(({ ip }) => ip), anywhere }
}

describe('reachableEndpoints()', () => {
  test('uses ready endpoints, the local ones for policy Local', () => {
    expect(reach([ep('a', local), ep('b'), ep('c', { ready: false })])).toEqual({
      cluster: ['a', 'b'],
      local: ['a'],
      anywhere: true,
    })
  })

  test('leaves a list that is not used empty', () => {
    const endpoints = [ep('a', local), ep('b')]
    expect(reach(endpoints, { cluster: false, local: true })).toEqual({ cluster: [], local: ['a'], anywhere: true })
    expect(reach(endpoints, { cluster: true, local: false })).toEqual({
      cluster: ['a', 'b'],
      local: [],
      anywhere: true,
    })
  })

  test('falls back to draining endpoints separately for each policy', () => {
    expect(reach([ep('a', { ...local, ...draining }), ep('b')])).toEqual({
      cluster: ['b'],
      local: ['a'],
      anywhere: true,
    })
    expect(reach([ep('a', { ...local, ...draining }), ep('b', draining), ep('c', finished)])).toEqual({
      cluster: ['a', 'b'],
      local: ['a'],
      anywhere: true,
    })
  })

  test('does not use what serves without being ready or terminating', () => {
    expect(reach([ep('a', { ready: false })])).toEqual({ cluster: [], local: [], anywhere: false })
  })

  test('sees that endpoints are only elsewhere', () => {
    expect(reach([ep('b')], { cluster: false, local: true })).toEqual({ cluster: [], local: [], anywhere: true })
    expect(reach([ep('b', draining)], { cluster: false, local: true }).anywhere).toBe(true)
  })

  test('narrows to the zone when every ready endpoint has a hint and one is for the zone', () => {
    const hinted = [
      ep('a', { zoneHints: ['zone-a'] }),
      ep('b', { zoneHints: ['zone-b', 'zone-a'] }),
      ep('c', { zoneHints: ['zone-c'] }),
    ]
    expect(reach(hinted).cluster).toEqual(['a', 'b'])
    expect(reach([...hinted, ep('d')]).cluster).toEqual(['a', 'b', 'c', 'd'])
    expect(reach([...hinted, ep('d', { ready: false })]).cluster).toEqual(['a', 'b'])
    expect(reach(hinted, both, { ...node, zone: 'zone-x' }).cluster).toEqual(['a', 'b', 'c'])
    expect(reach(hinted, both, { ...node, zone: undefined }).cluster).toEqual(['a', 'b', 'c'])
  })

  test('does not count the hint of an endpoint that is not ready', () => {
    const unready = ep('a', { zoneHints: ['zone-a'], ready: false })
    expect(reach([unready, ep('b', { zoneHints: ['zone-b'] })]).cluster).toEqual(['b'])
  })

  test('narrows to the node before the zone, and to the zone when no hint is for the node', () => {
    const a = ep('a', { nodeHints: ['node-a'], zoneHints: ['zone-a'] })
    const b = ep('b', { nodeHints: ['node-b'], zoneHints: ['zone-a'] })
    const c = ep('c', { nodeHints: ['node-c'], zoneHints: ['zone-c'] })
    expect(reach([a, b, c]).cluster).toEqual(['a'])
    expect(reach([b, c]).cluster).toEqual(['b'])
    expect(reach([a, b, ep('d', { zoneHints: ['zone-a'] })]).cluster).toEqual(['a', 'b', 'd'])
  })

  test('ignores hints for draining endpoints and for policy Local', () => {
    const far = { zoneHints: ['zone-b'] }
    expect(reach([ep('a', { ...local, ...far }), ep('b', { zoneHints: ['zone-a'] })])).toMatchObject({
      cluster: ['b'],
      local: ['a'],
    })
    expect(reach([ep('a', { ...draining, ...far }), ep('b', { ...draining, zoneHints: ['zone-a'] })]).cluster).toEqual([
      'a',
      'b',
    ])
  })

  test('finds something for Cluster policy whenever there is anything anywhere', () => {
    const hints = fc.option(fc.subarray(['zone-a', 'zone-b', 'node-a', 'node-b'], { minLength: 1 }), { nil: undefined })
    const any = fc.record({
      ip: fc.string(),
      address: fc.constant(asBytes('')),
      port: fc.constant(1),
      isLocal: fc.boolean(),
      nodeName: fc.constant(''),
      ready: fc.boolean(),
      serving: fc.boolean(),
      terminating: fc.boolean(),
      weight: fc.nat(2),
      zoneHints: hints,
      nodeHints: hints,
    })
    fc.assert(
      fc.property(fc.array(any), (endpoints) => {
        const { cluster, local, anywhere } = reachableEndpoints(endpoints, both, node)
        expect(cluster.length > 0).toBe(anywhere)
        expect(local.every((endpoint) => endpoint.isLocal)).toBe(true)
        const isUsed = new Set([...cluster, ...local])
        expect(endpoints.filter((e) => isUsed.has(e)).every((e) => e.ready || (e.serving && e.terminating))).toBe(true)
      }),
    )
  })
})
