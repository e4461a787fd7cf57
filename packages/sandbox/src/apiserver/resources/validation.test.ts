// What is wrong with objects, field by field. The reasons and paths are those that kube-apiserver 1.36 gave for the same
// objects.

import { describe, expect, it } from 'vitest'
import { ApiError } from '../api-error.ts'
import { bootstrap } from '../bootstrap.ts'
import { createRegistry } from '../start-api-server.ts'
import { ManualClock } from '../../../../../test/support/manual-clock.ts'
import { Store } from '../store/store.ts'
import {
  configMaps,
  deployments,
  endpoints,
  endpointSlices,
  events,
  ipAddresses,
  namespaces,
  nodes,
  pods,
  replicaSets,
  replicationControllers,
  serviceCidrs,
  services,
} from './table.ts'
import type { ApiObject } from '../objects/meta.ts'
import type { Resource } from './resource.ts'

const registry = createRegistry(new Store(), new ManualClock())
bootstrap(registry, { serviceCidrs: ['10.96.0.0/16', 'fd00:96::/112'] })

/** `Required spec.ports`, one per complaint, sorted. */
function complaints<T extends ApiObject>(resource: Resource<T>, object: object): string[] {
  try {
    const place = resource.namespaced ? { name: 'v', namespace: 'default' } : { name: 'v' }
    const { metadata, ...rest } = object as { metadata?: object }
    registry.create(resource, { metadata: { ...place, ...metadata }, ...rest }, { dryRun: true })
    return []
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    const causes = error.details?.causes ?? []
    return causes.map(({ reason, field }) => `${reason.replace('FieldValue', '')} ${field}`).sort()
  }
}

const ports = [{ port: 80 }]
const containers = [{ name: 'c', image: 'i' }]
const template = { metadata: { labels: { a: 'b' } }, spec: { containers } }
const selector = { matchLabels: { a: 'b' } }

describe('a Service', () => {
  it.each([
    [{ ports }, []],
    [{}, ['Required spec.ports']],
    [{ ports, type: 'Foo' }, ['NotSupported spec.type']],
    [{ ports: [{ port: 0 }] }, ['Invalid spec.ports[0].port', 'Invalid spec.ports[0].targetPort']],
    [{ ports: [{ port: 80, protocol: 'X' }] }, ['NotSupported spec.ports[0].protocol']],
    [{ ports: [{ port: 80 }, { port: 81 }] }, ['Required spec.ports[0].name', 'Required spec.ports[1].name']],
    [
      {
        ports: [
          { name: 'a', port: 80 },
          { name: 'a', port: 81 },
        ],
      },
      ['Duplicate spec.ports[1].name'],
    ],
    [
      {
        ports: [
          { name: 'a', port: 80 },
          { name: 'b', port: 80 },
        ],
      },
      ['Duplicate spec.ports[1]'],
    ],
    [{ ports: [{ name: 'A_', port: 80 }] }, ['Invalid spec.ports[0].name']],
    [{ ports: [{ port: 80, targetPort: '-x' }] }, ['Invalid spec.ports[0].targetPort']],
    [{ ports, sessionAffinity: 'X' }, ['NotSupported spec.sessionAffinity']],
    [
      { ports, sessionAffinity: 'ClientIP', sessionAffinityConfig: { clientIP: { timeoutSeconds: 0 } } },
      ['Invalid spec.sessionAffinityConfig.clientIP.timeoutSeconds'],
    ],
    [{ ports, externalIPs: ['127.0.0.1', 'x'] }, ['Invalid spec.externalIPs[0]', 'Invalid spec.externalIPs[1]']],
    [{ ports, clusterIP: 'x' }, ['Invalid spec.clusterIPs[0]']],
    [{ ports, clusterIPs: ['10.96.0.9'] }, ['Invalid spec.clusterIPs']],
    [{ ports, ipFamilies: ['IPv5'] }, ['NotSupported spec.ipFamilies[0]']],
    [{ ports, ipFamilies: ['IPv4', 'IPv6'] }, ['Invalid spec.ipFamilyPolicy']],
    [{ ports, ipFamilyPolicy: 'X' }, ['NotSupported spec.ipFamilyPolicy']],
    [{ ports, type: 'NodePort', clusterIP: 'None' }, ['Invalid spec.clusterIPs[0]']],
    [{ type: 'ExternalName' }, ['Required spec.externalName']],
    [{ type: 'ExternalName', externalName: 'a.b', clusterIP: '10.96.0.9' }, ['Forbidden spec.clusterIPs']],
    [{ ports: [{ port: 80, nodePort: 30_001 }] }, ['Forbidden spec.ports[0].nodePort']],
    [{ ports, loadBalancerSourceRanges: ['10.0.0.0/8'] }, ['Forbidden spec.LoadBalancerSourceRanges']],
    [{ ports, type: 'LoadBalancer', loadBalancerSourceRanges: ['x'] }, ['Invalid spec.LoadBalancerSourceRanges[0]']],
    [{ ports, allocateLoadBalancerNodePorts: true }, ['Forbidden spec.allocateLoadBalancerNodePorts']],
    [{ ports, loadBalancerClass: 'a/b' }, ['Forbidden spec.loadBalancerClass']],
    [{ ports, externalTrafficPolicy: 'Local' }, ['Invalid spec.externalTrafficPolicy']],
    [{ ports, type: 'NodePort', externalTrafficPolicy: 'X' }, ['NotSupported spec.externalTrafficPolicy']],
    [{ ports, internalTrafficPolicy: 'X' }, ['NotSupported spec.internalTrafficPolicy']],
    [{ ports, trafficDistribution: 'X' }, ['NotSupported spec.trafficDistribution']],
    [{ ports, healthCheckNodePort: 30_001 }, ['Invalid spec.healthCheckNodePort']],
    [{ ports, selector: { 'a b': 'c d' } }, ['Invalid spec.selector', 'Invalid spec.selector']],
  ])('with the spec %j: %j', (spec, expected) => expect(complaints(services, { spec })).toEqual(expected))

  it.each([
    [{ name: 'A' }, ['Invalid metadata.name']],
    [{ name: 'a'.repeat(64) }, ['Invalid metadata.name']],
    [{ name: undefined }, ['Required metadata.name']],
    [{ labels: { 'x y': 'z' } }, ['Invalid metadata.labels']],
    [{ annotations: { 'x y': 'z' } }, ['Invalid metadata.annotations']],
    [
      { ownerReferences: [{ apiVersion: '', kind: 'K', name: 'n', uid: '' }] },
      ['Invalid metadata.ownerReferences.apiVersion', 'Invalid metadata.ownerReferences.uid'],
    ],
  ])('with the metadata %j: %j', (metadata, expected) =>
    expect(complaints(services, { metadata, spec: { ports } })).toEqual(expected),
  )
})

describe('a Pod', () => {
  it.each([
    [{ containers }, []],
    [{}, ['Required spec.containers']],
    [{ containers: [{ name: 'c' }] }, ['Required spec.containers[0].image']],
    [{ containers: [{ image: 'i' }] }, ['Required spec.containers[0].name']],
    [{ containers: [...containers, ...containers] }, ['Duplicate spec.containers[1].name']],
    [
      { containers: [{ ...containers[0], ports: [{ containerPort: 0 }, { containerPort: 1, protocol: 'X' }] }] },
      ['NotSupported spec.containers[0].ports[1].protocol', 'Required spec.containers[0].ports[0].containerPort'],
    ],
    [{ containers, restartPolicy: 'X' }, ['NotSupported spec.restartPolicy']],
    [{ containers, hostname: 'A' }, ['Invalid spec.hostname']],
    [{ containers, nodeName: 'A' }, ['Invalid spec.nodeName']],
    [
      { containers: [{ ...containers[0], env: [{ name: '' }, { name: 'a=b' }] }] },
      ['Invalid spec.containers[0].env[1].name', 'Required spec.containers[0].env[0].name'],
    ],
    [{ containers, volumes: [{ name: 'A' }] }, ['Invalid spec.volumes[0].name']],
  ])('with the spec %j: %j', (spec, expected) => expect(complaints(pods, { spec })).toEqual(expected))
})

describe('a workload', () => {
  it.each([
    [{}, []],
    [{ replicas: -1 }, ['Invalid spec.replicas']],
    [{ selector: {} }, ['Invalid spec.selector']],
    [{ selector: { matchLabels: { x: 'y' } } }, ['Invalid spec.template.metadata.labels']],
    [{ strategy: { type: 'X' } }, ['NotSupported spec.strategy']],
    [{ strategy: { type: 'Recreate', rollingUpdate: {} } }, ['Forbidden spec.strategy.rollingUpdate']],
    [
      { strategy: { rollingUpdate: { maxSurge: 0, maxUnavailable: 0 } } },
      ['Invalid spec.strategy.rollingUpdate.maxUnavailable'],
    ],
    [{ strategy: { rollingUpdate: { maxSurge: 'x' } } }, ['Invalid spec.strategy.rollingUpdate.maxSurge']],
    [
      { template: { ...template, spec: { containers, restartPolicy: 'Never' } } },
      ['NotSupported spec.template.spec.restartPolicy'],
    ],
  ])('as a Deployment with %j: %j', (spec, expected) =>
    expect(complaints(deployments, { spec: { selector, template, ...spec } })).toEqual(expected),
  )

  it('as a ReplicaSet', () => {
    expect(complaints(replicaSets, { spec: { selector, template } })).toEqual([])
    expect(complaints(replicaSets, { spec: { template } })).toContain('Required spec.selector')
    expect(complaints(replicaSets, { spec: { selector, template, replicas: -1 } })).toEqual(['Invalid spec.replicas'])
  })

  it('as a ReplicationController', () => {
    expect(complaints(replicationControllers, { spec: { template } })).toEqual([])
    expect(complaints(replicationControllers, { spec: { template, selector: { x: 'y' } } })).toEqual([
      'Invalid spec.template.metadata.labels',
    ])
    expect(complaints(replicationControllers, { spec: {} })).toContain('Required spec.template')
  })
})

describe('an EndpointSlice', () => {
  it.each([
    [{}, []],
    [{ addressType: '' }, ['Required addressType']],
    [{ addressType: 'X' }, ['NotSupported addressType']],
    [{ endpoints: [{ addresses: [] }] }, ['Required endpoints[0].addresses']],
    [{ endpoints: [{ addresses: ['x'] }] }, ['Invalid endpoints[0].addresses[0]']],
    [{ endpoints: [{ addresses: ['fd00::1'] }] }, ['Invalid endpoints[0].addresses']],
    [{ endpoints: [{ addresses: ['127.0.0.1'] }] }, ['Invalid endpoints[0].addresses[0]']],
    [{ ports: [{ port: 1, protocol: 'X' }] }, ['NotSupported ports[0].protocol']],
    [{ ports: [{ port: 1 }, { port: 2 }] }, ['Duplicate ports[1].name']],
    [
      { endpoints: [{ addresses: ['10.0.0.1'], hints: { forZones: [{ name: 'a' }, { name: 'a' }] } }] },
      ['Duplicate endpoints[0].hints.forZones[1].name'],
    ],
    [{ endpoints: Array.from({ length: 1001 }, () => ({ addresses: ['10.0.0.1'] })) }, ['TooMany endpoints']],
  ])('with %j: %j', (fields, expected) =>
    expect(complaints(endpointSlices, { addressType: 'IPv4', ...fields })).toEqual(expected),
  )
})

describe('other objects', () => {
  it.each([
    [endpoints, { subsets: [{}] }, ['Required subsets[0]']],
    [endpoints, { subsets: [{ addresses: [{ ip: '127.0.0.1' }] }] }, ['Invalid subsets[0].addresses[0].ip']],
    [
      endpoints,
      { subsets: [{ addresses: [{ ip: '10.0.0.1' }], ports: [{ port: 0 }] }] },
      ['Invalid subsets[0].ports[0].port'],
    ],
    [configMaps, { data: { 'a b': 'c' } }, ['Invalid data[a b]']],
    [configMaps, { data: { a: 'b' }, binaryData: { a: 'Yg==' } }, ['Invalid data[a]']],
    [serviceCidrs, { spec: {} }, ['Required spec.cidrs']],
    [serviceCidrs, { spec: { cidrs: ['10.0.0.1/8'] } }, ['Invalid spec.cidrs[0]']],
    [serviceCidrs, { spec: { cidrs: ['10.0.0.0/8', '11.0.0.0/8'] } }, ['Invalid spec.cidrs']],
    [ipAddresses, { spec: {} }, ['Invalid metadata.name', 'Required spec.parentRef']],
    [nodes, { spec: { podCIDRs: ['x'] } }, ['Invalid spec.podCIDRs[0]']],
    [namespaces, { metadata: { name: 'A' } }, ['Invalid metadata.name']],
    [events, { involvedObject: { namespace: 'x' } }, ['Invalid involvedObject.namespace']],
  ] as [Resource, object, string[]][])('$0.kind %j: %j', (resource, object, expected) =>
    expect(complaints(resource, object)).toEqual(expected),
  )
})
