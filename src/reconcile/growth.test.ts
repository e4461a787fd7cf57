// From objects of n parts to what the kernel is told, in every mode: the cost must grow with n, whatever a tenant writes.
// The kernel itself is left out: drivers take what they are given, as bytes where that is how it leaves this program.

import { describe, expect, test } from 'vitest'
import { Buffer } from 'node:buffer'
import { bytesAllocated } from '../../test/support/allocations.ts'
import { protobuf } from '../../test/support/api-server/encodings.ts'
import { RESOURCES } from '../../test/support/api-server/objects.ts'
import { clusterOf } from '../../test/support/api-server/sample-cluster.ts'
import { bytesKept } from '../../test/support/kept-bytes.ts'
import { measureGrowth, NEARLY_LINEAR } from '../../test/support/growth.ts'
import { nodeView, service, slice } from '../../test/support/kube-objects.ts'
import { silentProgrammers } from '../../test/support/silent-kernel.ts'
import { listParserFor } from '../kube/encoding/codec.ts'
import { StringPool } from '../kube/encoding/string-pool.ts'
import { endpointSlices } from '../kube/objects/endpoint-slice.ts'
import { services as servicesResource } from '../kube/objects/service.ts'
import type { Decoded, Resource } from '../kube/resource.ts'
import type { EndpointSlice, Service } from '../kube/types.ts'
import { BALANCE_ANNOTATION } from '../model/balance.ts'
import { planNodeView } from '../model/node-view.ts'
import { ProblemLog } from '../model/problems.ts'
import { ServiceModel } from '../model/service-model.ts'
import { staleAnswerers, StaleFlowIndex } from '../model/stale-flows.ts'
import type { NodeView, ServicePortChange, ServicePortView } from '../model/types.ts'
import { WEIGHTS_ANNOTATION } from '../model/weights.ts'
import { ipvsPlanner } from '../modes/ipvs/plan/planner.ts'
import { nftablesPlanner } from '../modes/nftables/plan/planner.ts'

const SIZE = 1000
const FACTOR = 8

const node = nodeView({ nodeName: 'node-a', zone: 'zone-a' })
const times = <T>(n: number, make: (i: number) => T): T[] => Array.from({ length: n }, (_, i) => make(i))
const ip = (i: number, net = 10) => `${net}.${(i >> 16) & 255}.${(i >> 8) & 255}.${i & 255}`
const port = (i: number) => ({ name: `p${i}`, port: i + 1, nodePort: 0 })
const balanced = { type: 'LoadBalancer', ingress: [{ ip: '203.0.113.1', ipMode: 'VIP' }] }

interface Objects {
  readonly services: readonly Service[]
  readonly slices: readonly EndpointSlice[]
}

type Row = [what: string, make: (n: number) => Objects]

const one = (
  wish: Parameters<typeof service>[0],
  slices: readonly EndpointSlice[] = [slice(['10.1.0.1'])],
): Objects => ({
  services: [service(wish)],
  slices,
})

const rows: Row[] = [
  ['source ranges', (n) => one({ ...balanced, loadBalancerSourceRanges: times(n, (i) => `${ip(i, 100)}/32`) })],
  [
    'source ranges that hold each other',
    (n) => one({ ...balanced, loadBalancerSourceRanges: times(n, (i) => `${ip(i * 2, 100)}/${9 + (i % 24)}`) }),
  ],
  [
    'source ranges that hold the node',
    (n) =>
      one({
        ...balanced,
        loadBalancerSourceRanges: ['192.168.0.0/16', ...times(n, (i) => `${ip(i, 100)}/32`)],
      }),
  ],
  ['external IPs', (n) => one({ externalIPs: times(n, (i) => ip(i, 100)) })],
  ['load-balancer IPs', (n) => one({ ...balanced, ingress: times(n, (i) => ({ ip: ip(i, 100), ipMode: 'VIP' })) })],
  [
    'load-balancer IPs with a source range that holds the node',
    (n) =>
      one({
        ...balanced,
        loadBalancerSourceRanges: ['192.168.0.0/16'],
        ingress: times(n, (i) => ({ ip: ip(i, 100), ipMode: 'VIP' })),
      }),
  ],
  ['cluster IPs', (n) => one({ clusterIPs: times(n, (i) => ip(i)) })],
  [
    'ports',
    (n) =>
      one({ ports: times(n, port) }, [
        slice(['10.1.0.1'], { ports: times(n, (i) => ({ name: `p${i}`, port: i + 1 })) }),
      ]),
  ],
  ['ports of the same name', (n) => one({ ports: times(n, (i) => ({ ...port(i), name: 'p' })) })],
  ['UDP ports', (n) => one({ ports: times(n, (i) => ({ ...port(i), protocol: 'UDP' as const })) })],
  ['endpoints', (n) => one({}, [slice(times(n, (i) => ip(i, 11)))])],
  [
    'endpoints of a UDP service',
    (n) =>
      one({ ports: [{ protocol: 'UDP' }] }, [
        slice(
          times(n, (i) => ip(i, 11)),
          { ports: [{ protocol: 'UDP' }] },
        ),
      ]),
  ],
  [
    'endpoints of a service with affinity',
    (n) => one({ sessionAffinity: 'ClientIP' }, [slice(times(n, (i) => ip(i, 11)))]),
  ],
  [
    'endpoints behind policy Local',
    (n) =>
      one({ ...balanced, externalTrafficPolicy: 'Local', healthCheckNodePort: 32000 }, [
        slice(times(n, (i) => ({ address: ip(i, 11), nodeName: i % 2 === 0 ? 'node-a' : 'node-b' }))),
      ]),
  ],
  ['the same endpoint many times', (n) => one({}, [slice(times(n, () => ip(1, 11)))])],
  [
    'slices',
    (n) =>
      one(
        {},
        times(n, (i) => slice([ip(i, 11)], { name: `web-${i}` })),
      ),
  ],
  [
    'slices that all have the same endpoint',
    (n) =>
      one(
        {},
        times(n, (i) => slice([ip(1, 11)], { name: `web-${i}` })),
      ),
  ],
  ['zone hints', (n) => one({}, [slice([{ address: '10.1.0.1', zoneHints: times(n, (i) => `zone-${i}`) }])])],
  ['node hints', (n) => one({}, [slice([{ address: '10.1.0.1', nodeHints: times(n, (i) => `node-${i}`) }])])],
  [
    'endpoints with hints',
    (n) => one({}, [slice(times(n, (i) => ({ address: ip(i, 11), zoneHints: ['zone-a'], nodeHints: ['node-b'] })))]),
  ],
  [
    'weights by range, and endpoints',
    (n) =>
      one({ annotations: { [WEIGHTS_ANNOTATION]: times(n, (i) => `${ip(i * 4, 11)}/30=${i % 9}`).join(',') } }, [
        slice(times(n, (i) => ip(i * 4 + 1, 11))),
      ]),
  ],
  ['bad weights', (n) => one({ annotations: { [WEIGHTS_ANNOTATION]: 'x,'.repeat(n) } })],
  [
    'bad addresses',
    (n) => one({ externalIPs: times(n, (i) => `bad ${i}`), ports: times(n, (i) => ({ name: `A${i}` })) }),
  ],
  ['services', (n) => ({ services: times(n, (i) => service({ name: `s${i}`, clusterIPs: [ip(i)] })), slices: [] })],
  [
    'services with one external IP',
    (n) => ({
      services: times(n, (i) =>
        service({ name: `s${i}`, clusterIPs: [ip(i)], externalIPs: ['203.0.113.9'], createdMs: n - i }),
      ),
      slices: [],
    }),
  ],
  [
    'services with one node port',
    (n) => ({
      services: times(n, (i) =>
        service({
          name: `s${i}`,
          type: 'NodePort',
          clusterIPs: [ip(i)],
          createdMs: n - i,
          ports: [{ nodePort: 30000 }],
        }),
      ),
      slices: [],
    }),
  ],
]

function modelOf(): ServiceModel {
  const problems = new ProblemLog(() => {})
  return new ServiceModel({ node, problems, allowExternalIPs: true, startedMs: 0 })
}

interface Planned {
  readonly views: readonly ServicePortView[]
  readonly appear: readonly ServicePortChange[]
  readonly vanish: readonly ServicePortChange[]
}

function planned({ services, slices }: Objects): Planned {
  const model = modelOf()
  for (const object of services) model.setService(object)
  for (const object of slices) model.setSlice(object)
  const appear = model.takeChanges()
  const views = [...model.views()]
  return { views, appear, vanish: views.map((view) => ({ name: view.name, before: view, after: undefined })) }
}

describe('ServiceModel', () => {
  test.each(rows)('%s come, stay and go at a cost that grows with their number', async (_, make) => {
    const growth = await measureGrowth({
      size: SIZE,
      factor: FACTOR,
      make,
      run: ({ services, slices }) => {
        const model = modelOf()
        for (const object of services) model.setService(object)
        for (const object of slices) model.setSlice(object)
        model.takeChanges()
        for (const object of services) model.setService({ ...object })
        for (const object of slices) model.setSlice({ ...object })
        model.takeChanges()
        for (const { namespace, name } of slices) model.deleteSlice(`${namespace}/${name}`)
        model.takeChanges()
        // The last comes first here, so that each claim passes to the next.
        for (const { namespace, name } of services.toReversed()) {
          model.deleteService(`${namespace}/${name}`)
          model.takeChanges()
        }
      },
    })
    expect(growth.exponent, JSON.stringify(growth)).toBeLessThan(NEARLY_LINEAR)
  })
})

test('staleAnswerers() and StaleFlowIndex cost what the endpoints and flows do', async () => {
  const growth = await measureGrowth({
    size: SIZE,
    factor: FACTOR,
    make: (n) => {
      const udp = { ports: [{ protocol: 'UDP' as const }] }
      const side = (net: number) =>
        planned(
          one(udp, [
            slice(
              times(n, (i) => ip(i, net)),
              udp,
            ),
          ]),
        ).views[0]!
      const [before, after] = [side(11), side(12)]
      const flow = (i: number) => ({
        original: { src: '10.1.0.1', dst: '10.0.0.1', sport: i, dport: 80 },
        reply: { src: ip(i, 11), dst: '10.1.0.1', sport: 8080, dport: i },
        isAnswered: true,
      })
      return { change: { name: after.name, before, after }, flows: times(n, flow) }
    },
    run: ({ change, flows }) => {
      if (staleAnswerers([change]) === 'any') throw new Error('only endpoints changed')
      const index = new StaleFlowIndex(new Set())
      index.add(change.after)
      for (const flow of flows) index.isStale(flow)
    },
  })
  expect(growth.exponent, JSON.stringify(growth)).toBeLessThan(NEARLY_LINEAR)
})

test('setLoads() of all ports of a service costs what the ports do', async () => {
  const growth = await measureGrowth({
    size: SIZE / 5,
    factor: FACTOR,
    make: (n) => {
      const { services, slices } = one(
        { ports: times(n, port), annotations: { [BALANCE_ANNOTATION]: 'least-connections' } },
        [slice(['10.1.0.1', '10.1.0.2'], { ports: times(n, (i) => ({ name: `p${i}`, port: i + 1 })) })],
      )
      const model = modelOf()
      for (const object of services) model.setService(object)
      for (const object of slices) model.setSlice(object)
      model.takeChanges()
      return model
    },
    run: (model) => {
      for (const { name, backends } of model.views()) {
        model.setLoads(name, new Map(backends.map(({ ip, port }) => [`${ip}:${port}`, { open: 10, begun: 10 }])))
      }
    },
  })
  expect(growth.exponent, JSON.stringify(growth)).toBeLessThan(NEARLY_LINEAR)
})

test('planNodeView() costs what the addresses and ranges of the node do', async () => {
  const growth = await measureGrowth({
    size: SIZE * 4,
    factor: FACTOR,
    make: (n) => ({
      node: {
        name: 'node-a',
        zone: undefined,
        deleting: false,
        taints: [],
        addresses: times(n, (i) => ({ type: 'InternalIP', address: ip(i) })),
        podCIDRs: times(n, (i) => `${ip(i)}/32`),
      },
      machineAddresses: times(n, (i) => ip(i)),
      serviceCidrs: times(n, (i) => `${ip(i)}/32`),
    }),
    run: (facts) => {
      const detectLocal = { mode: 'NodeCIDR', clusterCIDRs: [], bridgeInterface: '', interfaceNamePrefix: '' } as const
      const settings = { nodeName: 'node-a', bindAddress: '::', detectLocal, nodePortAddresses: ['primary'] }
      const view = planNodeView({ ...settings, masqueradeAll: false, masqueradeBit: 14 }, facts, 4)
      nftablesPlanner.base(view)
      ipvsPlanner.base(view, { own: facts.machineAddresses, nodePort: facts.machineAddresses })
    },
  })
  expect(growth.exponent, JSON.stringify(growth)).toBeLessThan(NEARLY_LINEAR)
})

describe.each(Object.keys(silentProgrammers) as (keyof typeof silentProgrammers)[])('%s', (mode) => {
  test.each(rows)('programs %s at a cost that grows with their number', async (_, make) => {
    const programOnce = async (node: NodeView, { views, appear, vanish }: Planned) => {
      const programmer = silentProgrammers[mode]()
      await programmer.syncAll(node, [])
      await programmer.sync(node, appear)
      await programmer.syncAll(node, views)
      await programmer.sync(node, vanish)
    }
    const growth = await measureGrowth({
      size: SIZE,
      factor: FACTOR,
      make: (n) => planned(make(n)),
      run: (input) => programOnce(node, input),
    })
    expect(growth.exponent, JSON.stringify(growth)).toBeLessThan(NEARLY_LINEAR)
  })
})

describe('bytes of objects that a change of one endpoint makes, from the slice to the message for the kernel', () => {
  /** Measured, and a quarter more. */
  const most: Record<keyof typeof silentProgrammers, number> = {
    nftables: 69_000,
    userspace: 55_000,
    iptables: 137_000,
    ipvs: 83_000,
  }

  test.each(Object.keys(most) as (keyof typeof most)[])('%s', async (mode) => {
    const addresses = (round: number) => times(10, (i) => ip(i === 3 ? 1000 + round : i, 11))
    const model = modelOf()
    const programmer = silentProgrammers[mode]()
    model.setService(service({ type: 'NodePort', ports: [{ nodePort: 30000 }] }))
    model.setSlice(slice(addresses(0)))
    model.takeChanges()
    await programmer.syncAll(node, model.views())
    const change = async (round: number) => {
      model.setSlice(slice(addresses(round)))
      await programmer.sync(node, model.takeChanges())
    }
    const rounds = 500
    // What is optimised makes fewer objects; the measured rounds are those of a program that has been at it for a while.
    for (let i = 0; i < 3000; i++) await change(i)
    const bytes = await bytesAllocated(async () => {
      for (let i = 0; i < rounds; i++) await change(i)
    })
    expect(bytes / rounds).toBeLessThan(most[mode])
  })
})

test('bytes of objects that a start makes for a service with ten endpoints, from the lists to the message for the kernel', async () => {
  const services = 4096
  const cluster = [...clusterOf({ services, endpointsPerService: 10 })].map((object, i) => ({
    ...object,
    metadata: { namespace: 'default', resourceVersion: String(i + 1), ...object.metadata },
  }))
  const lists = Object.values(LISTED).map((resource) => {
    const served = RESOURCES.find(({ kind }) => kind === resource.kind)!
    const objects = cluster.filter(({ kind }) => kind === resource.kind)
    return Buffer.concat(protobuf.list(served, { resourceVersion: '1' }, objects))
  })
  const start = async () => {
    const model = modelOf()
    const pool = new StringPool()
    for (const { key, object } of decoded(LISTED.services, lists[0]!, pool)) model.setService(object, key)
    for (const { key, object } of decoded(LISTED.slices, lists[1]!, pool)) model.setSlice(object, key)
    model.takeChanges()
    await silentProgrammers.nftables().syncAll(node, model.views())
  }
  // What is optimised makes fewer objects.
  for (let i = 0; i < 3; i++) await start()
  const bytes = await bytesAllocated(start)
  // Measured: 17,000.
  expect(bytes / services).toBeLessThan(20_000)
})

const LISTED = { services: servicesResource, slices: endpointSlices }

/** Piece by piece, as a list comes. */
function* decoded<T>(resource: Resource<T>, list: Buffer, pool: StringPool): Generator<Decoded<T>> {
  const parser = listParserFor(protobuf.contentType, resource, pool)
  const objects: Decoded<T>[] = []
  for (let at = 0; at < list.length; at += 65_536) {
    parser.push(list.subarray(at, at + 65_536), objects)
    yield* objects.splice(0)
  }
}

test('bytes of objects that stay for a service and for an endpoint, in nftables mode', () => {
  const keptBy = (services: number, endpoints: number) =>
    bytesKept(() => {
      const model = modelOf()
      const programmer = silentProgrammers.nftables()
      for (let i = 0; i < services; i++) {
        const name = `service-${i}`
        model.setService(service({ name, clusterIPs: [ip(i)], ports: [{ name: 'http' }] }))
        const nodes = times(endpoints, (j) => ({ address: ip(i * endpoints + j, 11), nodeName: NODES[j % 100]! }))
        model.setSlice(slice(nodes, { name: `${name}-abc12`, serviceName: name, ports: [{ name: 'http' }] }))
      }
      model.takeChanges()
      void programmer.syncAll(node, model.views())
      return { model, programmer }
    })
  const services = 4096
  // What is compiled and cached on the way is there before it counts.
  keptBy(100, 10)
  const [few, many] = [keptBy(services, 10), keptBy(services, 50)]
  const perEndpoint = (many - few) / services / 40
  const perService = few / services - 10 * perEndpoint
  // Measured: 18 and 1686.
  expect(perEndpoint).toBeLessThan(22)
  expect(perService).toBeLessThan(1900)
})

const NODES = times(100, (i) => `node-${i}`)
