import { readFileSync } from 'node:fs'
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { protobuf, json, type Encoding } from '../../../test/support/api-server/encodings.ts'
import { RESOURCES, type ApiObject } from '../../../test/support/api-server/objects.ts'
import type { Decoded, Resource } from '../resource.ts'
import type { EndpointSlice, Node, Service, ServiceCIDR } from '../types.ts'
import { listParserFor } from '../encoding/codec.ts'
import { StringPool } from '../encoding/string-pool.ts'
import { endpointSlices } from './endpoint-slice.ts'
import { endpoints } from './endpoints.ts'
import { nodes } from './node.ts'
import { serviceCidrs } from './service-cidr.ts'
import { services } from './service.ts'
import { runs } from '../../../test/support/runs.ts'

const pool = new StringPool()

function decodeList<T>(resource: Resource<T>, contentType: string, bytes: Buffer): Decoded<T>[] {
  const parser = listParserFor(contentType, resource, pool)
  const objects: Decoded<T>[] = []
  parser.push(bytes, objects)
  parser.finish()
  return objects
}

/** An object through an encoding and back. */
function roundTrip<T>(resource: Resource<T>, encoding: Encoding, object: ApiObject): T {
  const served = RESOURCES.find(({ kind }) => kind === resource.kind)!
  const chunks = encoding.list(served, { resourceVersion: '1' }, [{ ...object, kind: served.kind }])
  const [decoded] = decodeList(resource, encoding.contentType, Buffer.concat(chunks))
  return decoded!.object
}

function recorded(name: string): { json: Buffer; protobuf: Buffer } {
  const read = (file: string): Buffer => readFileSync(new URL(`testdata/${file}`, import.meta.url))
  return { json: read(`${name}.json.txt`), protobuf: read(`${name}.pb`) }
}

describe('objects recorded from a kube-apiserver', () => {
  test.each([services, endpointSlices, endpoints, nodes, serviceCidrs] as Resource<unknown>[])(
    '$name decode to the same from JSON and from protobuf',
    (resource) => {
      const bytes = recorded(resource.name)
      const fromJson = decodeList(resource, json.contentType, bytes.json)
      const fromProtobuf = decodeList(resource, protobuf.contentType, bytes.protobuf)
      expect(fromJson.length).toBeGreaterThan(0)
      expect(fromProtobuf).toEqual(fromJson)
    },
  )

  const byName = <T>(resource: Resource<T>, name: string): T =>
    decodeList(resource, protobuf.contentType, recorded(resource.name).protobuf).find(({ key }) => key === name)!.object

  test('services.fromProtobuf() reads every field that the proxy uses', () => {
    const { createdMs, clusterIPs, ...rest } = byName(services, 'fixture/everything')
    expect(new Date(createdMs).getUTCFullYear()).toBe(2026)
    expect(clusterIPs).toHaveLength(1)
    expect(rest).toEqual({
      namespace: 'fixture',
      name: 'everything',
      type: 'LoadBalancer',
      externalIPs: ['192.0.2.10', '192.0.2.11'],
      ports: [
        { name: 'http', protocol: 'TCP', port: 80, nodePort: 30080 },
        { name: 'dns', protocol: 'UDP', port: 53, nodePort: 30053 },
      ],
      sessionAffinity: 'ClientIP',
      affinityTimeoutSeconds: 90,
      externalTrafficPolicy: 'Local',
      internalTrafficPolicy: 'Local',
      loadBalancerSourceRanges: ['10.0.0.0/8', '192.168.0.0/16'],
      healthCheckNodePort: 30999,
      ingress: [
        { ip: '203.0.113.1', ipMode: 'VIP' },
        { ip: '203.0.113.2', ipMode: 'Proxy' },
      ],
      labels: { 'service.kubernetes.io/topology': 'x' },
      annotations: { 'service.kubernetes.io/topology-mode': 'Auto' },
    } satisfies Omit<Service, 'createdMs' | 'clusterIPs'>)
  })

  test('services.fromProtobuf() keeps headless and external services apart from those with a cluster IP', () => {
    expect(byName(services, 'fixture/headless').clusterIPs).toEqual(['None'])
    expect(byName(services, 'fixture/external')).toMatchObject({ type: 'ExternalName', clusterIPs: [] })
  })

  test('endpointSlices.fromProtobuf() reads conditions, places and hints', () => {
    const slice = byName(endpointSlices, 'fixture/everything-v4')
    expect(slice).toEqual({
      namespace: 'fixture',
      name: 'everything-v4',
      serviceName: 'everything',
      addressType: 'IPv4',
      ports: [
        { name: 'http', protocol: 'TCP', port: 8080 },
        { name: 'dns', protocol: 'UDP', port: 53 },
      ],
      endpoints: [
        anEndpoint({ address: '10.1.0.1' }),
        anEndpoint({ address: '10.1.0.2', ready: false, terminating: true, nodeName: 'node-1' }),
        anEndpoint({
          address: '10.1.0.3',
          nodeName: 'node-2',
          zoneHints: ['zone-a'],
          nodeHints: ['node-1'],
        }),
        anEndpoint({ address: '10.1.0.4', zoneHints: ['zone-a', 'zone-b'] }),
      ],
      triggerTimeMs: Date.UTC(2026, 7, 1, 10, 0, 0, 500),
    } satisfies EndpointSlice)
    expect(byName(endpointSlices, 'fixture/everything-v6').ports[1]).toEqual({
      name: 'any',
      protocol: 'TCP',
      port: undefined,
    })
    expect(byName(endpointSlices, 'fixture/orphan')).toMatchObject({ serviceName: '', addressType: 'FQDN', ports: [] })
  })

  test('endpoints.fromProtobuf() makes one slice per subset and IP family', () => {
    const slices = byName(endpoints, 'fixture/legacy')
    expect(slices.map(({ name, addressType }) => [name, addressType])).toEqual([
      ['legacy-ipv4-0', 'IPv4'],
      ['legacy-ipv6-0', 'IPv6'],
      ['legacy-ipv4-1', 'IPv4'],
    ])
    expect(slices[0]).toMatchObject({ serviceName: 'legacy', triggerTimeMs: Date.UTC(2026, 7, 1, 10) })
    expect(slices[0]!.endpoints).toEqual([
      anEndpoint({ address: '10.1.0.1', nodeName: 'node-1' }),
      anEndpoint({ address: '10.1.0.2', ready: false, serving: false }),
    ])
    expect(slices[2]!.ports).toEqual([{ name: '', protocol: 'UDP', port: 53 }])
  })

  test('nodes.fromProtobuf() reads addresses, ranges, zone and taints', () => {
    const node = byName(nodes, 'fixture-node')
    expect(node).toEqual({
      name: 'fixture-node',
      zone: 'zone-a',
      addresses: [
        { type: 'InternalIP', address: '192.168.1.5' },
        { type: 'InternalIP', address: 'fd00::5' },
        { type: 'Hostname', address: 'fixture-node' },
      ],
      podCIDRs: ['10.244.1.0/24', 'fd00:244:1::/64'],
      deleting: false,
      taints: ['ToBeDeletedByClusterAutoscaler', 'node.kubernetes.io/not-ready'],
    } satisfies Node)
  })

  test('serviceCidrs.fromProtobuf() reads the ranges', () => {
    expect(byName(serviceCidrs, 'fixture')).toEqual({ name: 'fixture', cidrs: ['10.200.0.0/16'] } satisfies ServiceCIDR)
  })
})

describe('fields of old API servers', () => {
  test.each([json, protobuf])('services of $contentType take clusterIP where clusterIPs is missing', (encoding) => {
    const service = roundTrip(services, encoding, { metadata: { name: 'a' }, spec: { clusterIP: '10.0.0.1' } })
    expect(service.clusterIPs).toEqual(['10.0.0.1'])
  })

  test.each([json, protobuf])('nodes of $contentType take podCIDR where podCIDRs is missing', (encoding) => {
    const node = roundTrip(nodes, encoding, { metadata: { name: 'a' }, spec: { podCIDR: '10.0.0.0/24' } })
    expect(node.podCIDRs).toEqual(['10.0.0.0/24'])
  })
})

describe('any object', () => {
  const text = fc.oneof(fc.string({ maxLength: 80 }), fc.string({ unit: 'grapheme', maxLength: 20 }))
  const name = fc.stringMatching(/^[a-z][a-z0-9-]{0,30}$/)
  const address = fc.oneof(fc.ipV4(), fc.ipV6(), text)
  const protocol = fc.constantFrom('TCP', 'UDP', 'SCTP', '', 'ICMP')
  const port = fc.integer({ min: -1, max: 2 ** 31 - 1 })
  const optional = <T>(value: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> => fc.option(value, { nil: undefined })
  const key = fc.oneof(
    fc.constantFrom(
      'kubernetes.io/service-name',
      'service.kubernetes.io/x',
      'topology.kubernetes.io/zone',
      'endpoints.kubernetes.io/last-change-trigger-time',
      '__proto__',
    ),
    text,
  )
  const metadata = fc.record(
    {
      name,
      namespace: name,
      uid: text,
      resourceVersion: fc.nat().map(String),
      creationTimestamp: fc
        .nat({ max: 4_000_000_000 })
        .map((s) => new Date(s * 1000).toISOString().replace('.000', '')),
      labels: fc.dictionary(key, text, { noNullPrototype: true }),
      annotations: fc.dictionary(key, text, { noNullPrototype: true }),
    },
    { requiredKeys: ['name'] },
  ) as fc.Arbitrary<ApiObject['metadata']>

  const kinds: { resource: Resource<unknown>; objects: fc.Arbitrary<ApiObject> }[] = [
    {
      resource: services,
      objects: fc.record({
        metadata,
        spec: fc.record(
          {
            type: text,
            clusterIP: address,
            clusterIPs: fc.array(address),
            externalIPs: fc.array(address),
            sessionAffinity: text,
            sessionAffinityConfig: fc.record({ clientIP: fc.record({ timeoutSeconds: port }) }),
            externalTrafficPolicy: text,
            internalTrafficPolicy: text,
            loadBalancerSourceRanges: fc.array(text),
            healthCheckNodePort: port,
            ports: fc.array(
              fc.record(
                { name: text, protocol, port, nodePort: port, targetPort: fc.oneof(port, text) },
                { requiredKeys: [] },
              ),
            ),
          },
          { requiredKeys: [] },
        ),
        status: fc.record({
          loadBalancer: fc.record({
            ingress: fc.array(fc.record({ ip: address, hostname: text, ipMode: text }, { requiredKeys: [] })),
          }),
        }),
      }),
    },
    {
      resource: endpointSlices,
      objects: fc.record({
        metadata,
        addressType: text,
        endpoints: fc.array(
          fc.record(
            {
              addresses: fc.array(address),
              conditions: fc.record(
                { ready: fc.boolean(), serving: fc.boolean(), terminating: fc.boolean() },
                { requiredKeys: [] },
              ),
              nodeName: text,
              zone: text,
              hints: fc.record(
                { forZones: fc.array(fc.record({ name: text })), forNodes: fc.array(fc.record({ name: text })) },
                { requiredKeys: [] },
              ),
            },
            { requiredKeys: [] },
          ),
        ),
        ports: fc.array(fc.record({ name: text, protocol, port: optional(port) }, { requiredKeys: [] })),
      }),
    },
    {
      resource: endpoints,
      objects: fc.record({
        metadata,
        subsets: fc.array(
          fc.record({
            addresses: fc.array(fc.record({ ip: address, nodeName: text }, { requiredKeys: ['ip'] })),
            notReadyAddresses: fc.array(fc.record({ ip: address })),
            ports: fc.array(fc.record({ name: text, protocol, port }, { requiredKeys: ['port'] })),
          }),
        ),
      }),
    },
    {
      resource: nodes,
      objects: fc.record({
        metadata,
        spec: fc.record(
          { podCIDR: text, podCIDRs: fc.array(text), taints: fc.array(fc.record({ key: text, effect: text })) },
          { requiredKeys: [] },
        ),
        status: fc.record({ addresses: fc.array(fc.record({ type: text, address })) }),
      }),
    },
    { resource: serviceCidrs, objects: fc.record({ metadata, spec: fc.record({ cidrs: fc.array(text) }) }) },
  ]

  test.each(kinds)('of $resource.name decodes to the same from JSON and from protobuf', ({ resource, objects }) => {
    fc.assert(
      fc.property(objects, (object) => {
        expect(roundTrip(resource, protobuf, object)).toEqual(roundTrip(resource, json, object))
      }),
      runs(60),
    )
  })

  test.each(kinds)('of $resource.name may be any JSON at all without harm', ({ resource }) => {
    fc.assert(
      fc.property(
        fc.dictionary(fc.constantFrom('metadata', 'spec', 'status', 'endpoints', 'ports'), fc.jsonValue()),
        (body) => {
          const object = roundTrip(resource, json, body as ApiObject)
          expect(typeof object).toBe('object')
        },
      ),
    )
  })
})

function anEndpoint(fields: Partial<EndpointSlice['endpoints'][number]>): EndpointSlice['endpoints'][number] {
  return {
    address: '',
    ready: true,
    serving: true,
    terminating: false,
    nodeName: undefined,
    zoneHints: undefined,
    nodeHints: undefined,
    ...fields,
  }
}
