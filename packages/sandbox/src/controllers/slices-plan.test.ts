import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { aNode, aPod, aSandboxService } from '../../../../test/support/sandbox-objects.ts'
import { planSlices } from './slices-plan.ts'
import type { EndpointSlice } from '../apiserver/objects/endpoints.ts'
import type { Pod } from '../apiserver/objects/pod.ts'
import type { Service } from '../apiserver/objects/service.ts'
import type { SlicesPlan } from './slices-plan.ts'

const nodes = [aNode('node-1', { zone: 'zone-a' }), aNode('node-2', { zone: 'zone-b' })]
const plan = (service: Service, pods: readonly Pod[], existing: readonly EndpointSlice[] = []): SlicesPlan =>
  planSlices(service, { pods, nodes, existing })
const many = (from: number, to: number): Pod[] =>
  Array.from({ length: to - from }, (_, i) =>
    aPod({ name: `p${from + i}`, ips: [`10.1.${(from + i) >> 8}.${(from + i) & 255}`] }),
  )

/** What is there after a plan was carried out. */
function carryOut(existing: readonly EndpointSlice[], { write, remove }: SlicesPlan): EndpointSlice[] {
  const untouched = existing.filter((slice) => !remove.includes(slice) && !write.some((one) => one.existing === slice))
  const written = write.map(({ existing: before, addressType, labels, ports, endpoints }, i) => ({
    kind: 'EndpointSlice',
    apiVersion: 'discovery.k8s.io/v1',
    metadata: { name: before?.metadata.name ?? `new-${existing.length}-${i}`, namespace: 'default', labels },
    addressType,
    ports: [...ports],
    endpoints: [...endpoints],
  }))
  return [...untouched, ...written]
}

const addresses = (slices: readonly EndpointSlice[]) =>
  slices.flatMap(({ endpoints }) => (endpoints ?? []).map((endpoint) => endpoint.addresses[0]!)).sort()

describe('planSlices()', () => {
  it('describes each endpoint: state, node, zone, pod', () => {
    const pods = [aPod({ name: 'a' }), aPod({ name: 'b', ips: ['10.1.0.2'], node: 'node-2', deleting: true })]
    const [slice] = plan(aSandboxService(), pods).write
    expect(slice).toMatchObject({
      addressType: 'IPv4',
      labels: {
        'kubernetes.io/service-name': 'web',
        'endpointslice.kubernetes.io/managed-by': 'endpointslice-controller.k8s.io',
      },
      ports: [{ name: '', port: 8080, protocol: 'TCP' }],
      endpoints: [
        {
          addresses: ['10.1.0.1'],
          conditions: { ready: true, serving: true, terminating: false },
          nodeName: 'node-1',
          zone: 'zone-a',
          targetRef: { kind: 'Pod', namespace: 'default', name: 'a', uid: 'uid-a' },
        },
        { conditions: { ready: false, serving: true, terminating: true }, zone: 'zone-b' },
      ],
    })
  })

  it('has a slice of each family', () => {
    const service = aSandboxService({ ipFamilies: ['IPv4', 'IPv6'] })
    const { write } = plan(service, [aPod({ ips: ['10.1.0.1', 'fd00::1'] })])
    expect(write.map(({ addressType, endpoints }) => [addressType, endpoints[0]?.addresses])).toEqual([
      ['IPv4', ['10.1.0.1']],
      ['IPv6', ['fd00::1']],
    ])
  })

  it('removes the slices of a family that is gone', () => {
    const both = carryOut(
      [],
      plan(aSandboxService({ ipFamilies: ['IPv4', 'IPv6'] }), [aPod({ ips: ['10.1.0.1', 'fd00::1'] })]),
    )
    const { write, remove } = plan(aSandboxService(), [aPod({ ips: ['10.1.0.1', 'fd00::1'] })], both)
    expect(write).toEqual([])
    expect(remove.map(({ addressType }) => addressType)).toEqual(['IPv6'])
  })

  it('keeps one empty slice where there are no endpoints', () => {
    const first = carryOut([], plan(aSandboxService(), []))
    expect(first).toMatchObject([{ endpoints: [], ports: [] }])
    expect(plan(aSandboxService(), [], first)).toEqual({ write: [], remove: [] })
  })

  it('puts at most 100 endpoints into a slice', () => {
    const slices = carryOut([], plan(aSandboxService(), many(1, 251)))
    expect(slices.map(({ endpoints }) => endpoints?.length)).toEqual([100, 100, 50])
  })

  it('touches one slice for one change', () => {
    const slices = carryOut([], plan(aSandboxService(), many(1, 251)))
    const pods = many(1, 251).map((pod, i) =>
      i === 150 ? aPod({ name: 'p151', ips: ['10.1.0.151'], ready: false }) : pod,
    )
    const { write, remove } = plan(aSandboxService(), pods, slices)
    expect(remove).toEqual([])
    expect(write).toHaveLength(1)
    expect(write[0]!.endpoints.filter(({ conditions }) => conditions.ready !== true)).toHaveLength(1)
  })

  it('fills the fullest slice that has room', () => {
    const slices = carryOut([], plan(aSandboxService(), many(1, 251)))
    const { write } = plan(aSandboxService(), many(1, 252), slices)
    expect(write).toMatchObject([{ existing: slices[2] }])
  })

  it('says nothing when nothing changed', () => {
    const slices = carryOut([], plan(aSandboxService(), many(1, 151)))
    expect(plan(aSandboxService(), many(1, 151), slices)).toEqual({ write: [], remove: [] })
  })

  it('turns a slice of other ports into the new one', () => {
    const slices = carryOut([], plan(aSandboxService(), [aPod()]))
    const { write, remove } = plan(aSandboxService({ ports: [{ port: 80, targetPort: 9090 }] }), [aPod()], slices)
    expect(remove).toEqual([])
    expect(write).toMatchObject([{ existing: slices[0], ports: [{ port: 9090 }] }])
  })

  it('groups pods by what a named port means to them', () => {
    const service = aSandboxService({ ports: [{ port: 80, targetPort: 'http' }] })
    const other = { containers: [{ name: 'c', image: 'i', ports: [{ name: 'http', containerPort: 9090 }] }] }
    const { write } = plan(service, [aPod({ name: 'a' }), aPod({ name: 'b', ips: ['10.1.0.2'], spec: other })])
    expect(write.map(({ ports, endpoints }) => [ports[0]?.port, endpoints.length])).toEqual([
      [8080, 1],
      [9090, 1],
    ])
  })

  it('holds exactly the pods there are, whatever came and went', () => {
    const state = fc.array(fc.uniqueArray(fc.integer({ min: 1, max: 400 }), { maxLength: 300 }), {
      minLength: 1,
      maxLength: 5,
    })
    fc.assert(
      fc.property(state, (history) => {
        let slices: EndpointSlice[] = []
        for (const numbers of history) {
          const pods = numbers.flatMap((n) => many(n, n + 1))
          slices = carryOut(slices, plan(aSandboxService(), pods, slices))
          expect(addresses(slices)).toEqual(pods.map(({ status }) => status.podIPs![0]!.ip).sort())
          expect(Math.max(...slices.map(({ endpoints }) => endpoints?.length ?? 0))).toBeLessThanOrEqual(100)
          expect(plan(aSandboxService(), pods, slices)).toEqual({ write: [], remove: [] })
        }
      }),
      { numRuns: 20 },
    )
  })
})

describe('hints', () => {
  const pods = [aPod({ name: 'a' }), aPod({ name: 'b', ips: ['10.1.0.2'], node: 'node-2' })]
  const hints = (service: Service, list: readonly Pod[] = pods) =>
    plan(service, list).write[0]!.endpoints.map((endpoint) => endpoint.hints)

  it.each(['PreferClose', 'PreferSameZone'])('are for the own zone with %s', (trafficDistribution) => {
    expect(hints(aSandboxService({ trafficDistribution }))).toEqual([
      { forZones: [{ name: 'zone-a' }] },
      { forZones: [{ name: 'zone-b' }] },
    ])
  })

  it('are for the own node and zone with PreferSameNode', () => {
    expect(hints(aSandboxService({ trafficDistribution: 'PreferSameNode' }))[0]).toEqual({
      forZones: [{ name: 'zone-a' }],
      forNodes: [{ name: 'node-1' }],
    })
  })

  it('are only for what is ready', () => {
    const service = aSandboxService({ trafficDistribution: 'PreferClose' })
    expect(hints(service, [aPod({ ready: false })])).toEqual([undefined])
  })

  it('of the old topology mode appear only while the zones share evenly', () => {
    const auto = aSandboxService({}, { annotations: { 'service.kubernetes.io/topology-mode': 'Auto' } })
    expect(hints(auto)).toEqual([{ forZones: [{ name: 'zone-a' }] }, { forZones: [{ name: 'zone-b' }] }])
    const uneven = [...pods, aPod({ name: 'c', ips: ['10.1.0.3'] }), aPod({ name: 'd', ips: ['10.1.0.4'] })]
    expect(hints(auto, uneven)).toEqual([undefined, undefined, undefined, undefined])
    expect(hints(auto, [aPod()])).toEqual([undefined])
    expect(hints(aSandboxService())).toEqual([undefined, undefined])
  })
})
