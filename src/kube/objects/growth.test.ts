// A tenant writes these objects, up to a megabyte and a half each. Decoding one must not cost more than its size.

import { Buffer } from 'node:buffer'
import { describe, expect, test } from 'vitest'
import { json, protobuf } from '../../../test/support/api-server/encodings.ts'
import { RESOURCES, type ApiObject } from '../../../test/support/api-server/objects.ts'
import { apiVersionOf } from '../../../packages/sandbox/src/apiserver/resources/resource.ts'
import { measureGrowth, NEARLY_LINEAR } from '../../../test/support/growth.ts'
import { flattenSlices } from '../flatten-slices.ts'
import type { Decoded, Resource } from '../resource.ts'
import type { EndpointSlice } from '../types.ts'
import { listParserFor, watchParserFor } from '../encoding/codec.ts'
import { StringPool } from '../encoding/string-pool.ts'
import type { WatchFrame } from '../encoding/watch-parser.ts'
import { endpointSlices } from './endpoint-slice.ts'
import { endpoints } from './endpoints.ts'
import { nodes } from './node.ts'
import { serviceCidrs } from './service-cidr.ts'
import { services } from './service.ts'

const SIZE = 2000

const ip = (i: number) => `10.${(i >> 16) & 255}.${(i >> 8) & 255}.${i & 255}`
const times = <T>(n: number, make: (i: number) => T): T[] => Array.from({ length: n }, (_, i) => make(i))
const strings = (n: number) => Object.fromEntries(times(n, (i) => [`service.kubernetes.io/key-${i}`, `value ${i}`]))
const port = (i: number) => ({ name: `p${i}`, port: (i % 65535) + 1, protocol: 'TCP' })

interface Row {
  readonly resource: Resource<unknown>
  readonly field: string
  /** An object with so many of them. */
  readonly make: (n: number) => Record<string, unknown>
}

const rows: Row[] = []
const row = (resource: Resource<never>, field: string, make: Row['make']) => rows.push({ resource, field, make })
const spec = (field: string, make: (i: number) => unknown) => (n: number) => ({ spec: { [field]: times(n, make) } })

row(services as Resource<never>, 'spec.ports', spec('ports', port))
row(services as Resource<never>, 'spec.clusterIPs', spec('clusterIPs', ip))
row(services as Resource<never>, 'spec.externalIPs', spec('externalIPs', ip))
row(
  services as Resource<never>,
  'spec.ipFamilies',
  spec('ipFamilies', () => 'IPv4'),
)
row(
  services as Resource<never>,
  'spec.loadBalancerSourceRanges',
  spec('loadBalancerSourceRanges', (i) => `${ip(i)}/32`),
)
row(services as Resource<never>, 'status.loadBalancer.ingress', (n) => ({
  status: { loadBalancer: { ingress: times(n, (i) => ({ ip: ip(i), ipMode: 'VIP' })) } },
}))
row(endpointSlices as Resource<never>, 'ports', (n) => ({ ports: times(n, port) }))
row(endpointSlices as Resource<never>, 'endpoints', (n) => ({
  endpoints: times(n, (i) => ({ addresses: [ip(i)], conditions: { ready: true, serving: true, terminating: false } })),
}))
row(endpointSlices as Resource<never>, 'endpoints[].addresses', (n) => ({ endpoints: [{ addresses: times(n, ip) }] }))
row(endpointSlices as Resource<never>, 'endpoints[].hints.forZones', (n) => ({
  endpoints: [{ addresses: [ip(1)], hints: { forZones: times(n, (i) => ({ name: `zone-${i}` })) } }],
}))
row(endpointSlices as Resource<never>, 'endpoints[].hints.forNodes', (n) => ({
  endpoints: [{ addresses: [ip(1)], hints: { forNodes: times(n, (i) => ({ name: `node-${i}` })) } }],
}))
row(endpoints as Resource<never>, 'subsets', (n) => ({
  subsets: times(n, (i) => ({ addresses: [{ ip: ip(i) }], ports: [port(i)] })),
}))
row(endpoints as Resource<never>, 'subsets[].addresses', (n) => ({
  subsets: [{ addresses: times(n, (i) => ({ ip: ip(i) })) }],
}))
row(endpoints as Resource<never>, 'subsets[].notReadyAddresses', (n) => ({
  subsets: [{ notReadyAddresses: times(n, (i) => ({ ip: ip(i) })) }],
}))
row(endpoints as Resource<never>, 'subsets[].ports', (n) => ({
  subsets: [{ addresses: [{ ip: ip(1) }], ports: times(n, port) }],
}))
row(
  nodes as Resource<never>,
  'spec.podCIDRs',
  spec('podCIDRs', (i) => `${ip(i)}/32`),
)
row(
  nodes as Resource<never>,
  'spec.taints',
  spec('taints', (i) => ({ key: `taint-${i}`, effect: 'NoSchedule' })),
)
row(nodes as Resource<never>, 'status.addresses', (n) => ({
  status: { addresses: times(n, (i) => ({ type: 'InternalIP', address: ip(i) })) },
}))
row(
  serviceCidrs as Resource<never>,
  'spec.cidrs',
  spec('cidrs', (i) => `${ip(i)}/32`),
)
for (const resource of [services, endpointSlices, endpoints, nodes, serviceCidrs] as Resource<never>[]) {
  row(resource, 'metadata.labels', (n) => ({ metadata: { labels: strings(n) } }))
  row(resource, 'metadata.annotations', (n) => ({ metadata: { annotations: strings(n) } }))
}

/** As much as one read from a socket brings. */
const CHUNK = 16 * 1024

function* chunksOf(bytes: Buffer): Generator<Buffer> {
  for (let at = 0; at < bytes.length; at += CHUNK) yield bytes.subarray(at, at + CHUNK)
}

function objectOf({ resource, make }: Row, n: number): ApiObject {
  const served = RESOURCES.find(({ kind }) => kind === resource.kind)!
  const { metadata, ...rest } = make(n)
  const meta = { name: 'x', namespace: 'default', uid: 'u', resourceVersion: '1', ...(metadata as object) }
  return { kind: served.kind, apiVersion: apiVersionOf(served), metadata: meta, ...rest }
}

describe.each([
  ['protobuf', protobuf],
  ['JSON', json],
] as const)('%s', (_, encoding) => {
  test.each(rows)(
    'a list whose one $resource.kind has many $field is decoded in time that grows with them',
    async (each) => {
      const served = RESOURCES.find(({ kind }) => kind === each.resource.kind)!
      const growth = await measureGrowth({
        size: SIZE,
        make: (n) => Buffer.concat(encoding.list(served, { resourceVersion: '1' }, [objectOf(each, n)])),
        run: (bytes) => {
          const parser = listParserFor(encoding.contentType, each.resource, new StringPool())
          const objects: Decoded<unknown>[] = []
          for (const chunk of chunksOf(bytes)) parser.push(chunk, objects)
          parser.finish()
          if (objects.length !== 1) throw new Error('it must be there')
        },
      })
      expect(growth.exponent, JSON.stringify(growth)).toBeLessThan(NEARLY_LINEAR)
    },
  )

  test.each(rows.filter(({ field }) => !field.startsWith('metadata')))(
    'the same of a watch of $resource.kind, $field',
    async (each) => {
      const growth = await measureGrowth({
        size: SIZE,
        make: (n) => encoding.frame('ADDED', objectOf(each, n)),
        run: (bytes) => {
          const parser = watchParserFor(encoding.watchContentType, each.resource, new StringPool())
          const frames: WatchFrame<unknown>[] = []
          for (const chunk of chunksOf(bytes)) parser.push(chunk, frames)
          if (frames[0]?.type !== 'set') throw new Error(`it must be there: ${JSON.stringify(frames[0])}`)
        },
      })
      expect(growth.exponent, JSON.stringify(growth)).toBeLessThan(NEARLY_LINEAR)
    },
  )
})

test('flattenSlices() of Endpoints with many subsets costs what their number does', async () => {
  const made = (n: number) =>
    times(n, (i) => ({ namespace: 'default', name: `x-${i}`, serviceName: 'x', addressType: 'IPv4' }) as EndpointSlice)
  const growth = await measureGrowth({
    size: SIZE,
    make: made,
    run: (object) => {
      const flat = flattenSlices({ onEvents: () => {} })
      flat.onEvents([{ type: 'set', key: 'default/x', object }])
      flat.onEvents([{ type: 'set', key: 'default/x', object: [] }])
      flat.onEvents([{ type: 'set', key: 'default/x', object }])
      flat.onEvents([{ type: 'set', key: 'default/x', object: object.slice(1) }])
    },
  })
  expect(growth.exponent, JSON.stringify(growth)).toBeLessThan(NEARLY_LINEAR)
})

test.each([10_000, 80_000])('a Service with %i source ranges is decoded in the blink of an eye', (n) => {
  const each = rows.find(({ field }) => field === 'spec.loadBalancerSourceRanges')!
  const served = RESOURCES.find(({ kind }) => kind === 'Service')!
  const bytes = Buffer.concat(protobuf.list(served, { resourceVersion: '1' }, [objectOf(each, n)]))
  const before = process.cpuUsage()
  const parser = listParserFor(protobuf.contentType, each.resource, new StringPool())
  const objects: Decoded<unknown>[] = []
  for (const chunk of chunksOf(bytes)) parser.push(chunk, objects)
  expect(objects).toHaveLength(1)
  // It was 103 s for 80,000. A second is twenty times what it takes.
  expect(process.cpuUsage(before).user / 1e6).toBeLessThan(1)
})
