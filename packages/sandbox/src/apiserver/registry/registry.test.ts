import { describe, expect, it } from 'vitest'
import { ApiError } from '../api-error.ts'
import { ManualClock } from '../../../../../test/support/manual-clock.ts'
import { bootstrap } from '../bootstrap.ts'
import { configMaps, ipAddresses, namespaces, pods, replicaSets, services } from '../resources/table.ts'
import { createRegistry } from '../start-api-server.ts'
import { Store } from '../store/store.ts'
import type { Registry } from './registry.ts'
import type { Service } from '../objects/service.ts'

function openRegistry(serviceCidrs: readonly string[] = ['10.96.0.0/24', 'fd00:96::/112']) {
  const clock = new ManualClock(Date.UTC(2026, 0, 1))
  const registry = createRegistry(new Store(), clock)
  bootstrap(registry, { serviceCidrs })
  return { registry, clock }
}

const at = (name: string) => ({ namespace: 'default', name })

function failure(call: () => unknown): ApiError {
  try {
    call()
  } catch (error) {
    if (error instanceof ApiError) return error
    throw error
  }
  throw new Error('It was expected to fail')
}

describe('Registry.create()', () => {
  it('fills in what the server decides', () => {
    const { registry } = openRegistry()
    const { object } = registry.create(configMaps, { metadata: { ...at('a'), uid: 'mine', generation: 7 } })
    expect(object.metadata).toMatchObject({ creationTimestamp: '2026-01-01T00:00:00Z' })
    expect(object.metadata.uid).toMatch(/^[0-9a-f-]{36}$/)
    expect(object.metadata.generation).toBeUndefined()
  })

  it('makes up a name from generateName', () => {
    const { registry } = openRegistry()
    const { object } = registry.create(configMaps, { metadata: { generateName: 'web-', namespace: 'default' } })
    expect(object.metadata.name).toMatch(/^web-[bcdfghjklmnpqrstvwxz2456789]{5}$/)
  })

  it('refuses what exists, what has no namespace to live in, and what has a version already', () => {
    const { registry } = openRegistry()
    registry.create(configMaps, { metadata: at('a') })
    expect(failure(() => registry.create(configMaps, { metadata: at('a') }))).toMatchObject({
      code: 409,
      reason: 'AlreadyExists',
      message: 'configmaps "a" already exists',
    })
    const nowhere = { metadata: { namespace: 'nope', name: 'a' } }
    expect(failure(() => registry.create(configMaps, nowhere)).message).toBe('namespaces "nope" not found')
    const versioned = { metadata: { ...at('b'), resourceVersion: '1' } }
    expect(failure(() => registry.create(configMaps, versioned)).code).toBe(400)
  })

  it('names every field that is wrong', () => {
    const { registry } = openRegistry()
    const error = failure(() =>
      registry.create(services, { metadata: at('web'), spec: { type: 'Foo', ports: [{ port: 0, targetPort: 1 }] } }),
    )
    expect(error.code).toBe(422)
    expect(error.details?.causes).toEqual([
      {
        field: 'spec.type',
        reason: 'FieldValueNotSupported',
        message: 'Unsupported value: "Foo": supported values: "ClusterIP", "ExternalName", "LoadBalancer", "NodePort"',
      },
      {
        field: 'spec.ports[0].port',
        reason: 'FieldValueInvalid',
        message: 'Invalid value: 0: must be between 1 and 65535, inclusive',
      },
    ])
  })

  it('writes nothing in a dry run', () => {
    const { registry } = openRegistry()
    const { revision } = registry.store
    const { object } = registry.create(
      services,
      { metadata: at('a'), spec: { ports: [{ port: 1 }] } },
      { dryRun: true },
    )
    expect(object.spec.clusterIP).toMatch(/^10\.96\.0\./)
    expect(registry.store.revision).toBe(revision)
    expect(registry.find(services, at('a'))).toBeUndefined()
  })
})

describe('Registry.update()', () => {
  it('refuses an old version, and takes an update without one', () => {
    const { registry } = openRegistry()
    const { object } = registry.create(configMaps, { metadata: at('a'), data: { v: '1' } })
    registry.update(configMaps, { ...object, data: { v: '2' } })
    expect(failure(() => registry.update(configMaps, { ...object, data: { v: '3' } }))).toMatchObject({
      code: 409,
      reason: 'Conflict',
    })
    registry.update(configMaps, { metadata: at('a'), data: { v: '4' } })
    expect(registry.get(configMaps, at('a')).object.data).toEqual({ v: '4' })
  })

  it('keeps what a client cannot change', () => {
    const { registry } = openRegistry()
    const { object } = registry.create(pods, { metadata: at('a'), spec: { containers: [{ name: 'c', image: 'i' }] } })
    const changed = registry.update(pods, {
      ...object,
      metadata: { ...object.metadata, creationTimestamp: '2000-01-01T00:00:00Z', labels: { a: 'b' } },
      status: { phase: 'Failed' },
    })
    expect(changed.object.metadata).toMatchObject({
      creationTimestamp: object.metadata.creationTimestamp,
      labels: { a: 'b' },
    })
    expect(changed.object.status.phase).toBe('Pending')
  })

  it('writes nothing when nothing changes', () => {
    const { registry } = openRegistry()
    const { object, revision } = registry.create(configMaps, { metadata: at('a'), data: { v: '1' } })
    expect(registry.update(configMaps, { ...object, data: { v: '1' } }).revision).toBe(revision)
  })

  it('counts a generation for a new spec, and for nothing else', () => {
    const { registry } = openRegistry()
    const template = { metadata: { labels: { a: 'b' } }, spec: { containers: [{ name: 'c', image: 'i' }] } }
    registry.create(replicaSets, { metadata: at('a'), spec: { selector: { matchLabels: { a: 'b' } }, template } })
    const generation = () => registry.get(replicaSets, at('a')).object.metadata.generation
    registry.modify(replicaSets, at('a'), ({ metadata }) => (metadata.labels = { x: 'y' }))
    registry.modify(replicaSets, at('a'), ({ status }) => (status.replicas = 1), 'status')
    expect(generation()).toBe(1)
    registry.modify(replicaSets, at('a'), ({ spec }) => (spec.replicas = 2))
    expect(generation()).toBe(2)
  })

  it('keeps a selector and a cluster IP as they are', () => {
    const { registry } = openRegistry()
    registry.create(services, { metadata: at('a'), spec: { clusterIP: '10.96.0.2', ports: [{ port: 1 }] } })
    const error = failure(() =>
      registry.modify(services, at('a'), ({ spec }) => {
        spec.clusterIP = '10.96.0.200'
        spec.clusterIPs = ['10.96.0.200']
      }),
    )
    expect(error.message).toContain('spec.clusterIPs[0]: Invalid value: ["10.96.0.200"]: may not change once set')
  })
})

describe('Registry.delete()', () => {
  const pod = { spec: { nodeName: 'n', containers: [{ name: 'c', image: 'i' }] } }

  it('gives a running pod its grace period, and removes it on request', () => {
    const { registry } = openRegistry()
    registry.create(pods, { metadata: at('a'), ...pod })
    registry.delete(pods, at('a'))
    expect(registry.get(pods, at('a')).object.metadata).toMatchObject({
      deletionTimestamp: '2026-01-01T00:00:30Z',
      deletionGracePeriodSeconds: 30,
    })
    registry.delete(pods, at('a'), { gracePeriodSeconds: 5 })
    expect(registry.get(pods, at('a')).object.metadata).toMatchObject({
      deletionTimestamp: '2026-01-01T00:00:05Z',
      deletionGracePeriodSeconds: 5,
    })
    registry.delete(pods, at('a'), { gracePeriodSeconds: 0 })
    expect(registry.find(pods, at('a'))).toBeUndefined()
  })

  it('removes a pod without a node at once', () => {
    const { registry } = openRegistry()
    registry.create(pods, { metadata: at('a'), spec: { containers: [{ name: 'c', image: 'i' }] } })
    registry.delete(pods, at('a'))
    expect(registry.find(pods, at('a'))).toBeUndefined()
  })

  it('waits for finalizers', () => {
    const { registry } = openRegistry()
    registry.create(configMaps, { metadata: { ...at('a'), finalizers: ['example.com/x'] } })
    registry.delete(configMaps, at('a'))
    expect(registry.get(configMaps, at('a')).object.metadata.deletionTimestamp).toBeDefined()
    const added = () =>
      registry.modify(configMaps, at('a'), ({ metadata }) => metadata.finalizers!.push('example.com/y'))
    expect(failure(added).code).toBe(422)
    registry.modify(configMaps, at('a'), ({ metadata }) => (metadata.finalizers = []))
    expect(registry.find(configMaps, at('a'))).toBeUndefined()
  })

  it('checks preconditions', () => {
    const { registry } = openRegistry()
    registry.create(configMaps, { metadata: at('a') })
    expect(failure(() => registry.delete(configMaps, at('a'), { preconditions: { uid: 'x' } })).code).toBe(409)
    expect(failure(() => registry.delete(configMaps, at('b'))).code).toBe(404)
  })

  it('marks a namespace, and then nothing new gets into it', () => {
    const { registry } = openRegistry()
    registry.create(namespaces, { metadata: { name: 'demo' } })
    registry.delete(namespaces, { namespace: '', name: 'demo' })
    expect(registry.get(namespaces, { namespace: '', name: 'demo' }).object.status.phase).toBe('Terminating')
    const late = { metadata: { namespace: 'demo', name: 'a' } }
    expect(failure(() => registry.create(configMaps, late))).toMatchObject({ code: 403, reason: 'Forbidden' })
  })
})

describe('cluster IPs', () => {
  const create = (registry: Registry, name: string, spec: object): Service =>
    registry.create(services, { metadata: at(name), spec: { ports: [{ port: 80 }], ...spec } }).object

  it('are given out and booked, and freed with the service', () => {
    const { registry } = openRegistry()
    const { clusterIP = '' } = create(registry, 'a', {}).spec
    const booked = () => registry.find(ipAddresses, { namespace: '', name: clusterIP })?.object.spec.parentRef
    expect(booked()).toEqual({ resource: 'services', namespace: 'default', name: 'a' })
    registry.delete(services, at('a'))
    expect(booked()).toBeUndefined()
  })

  it('can be asked for, in the range and once', () => {
    const { registry } = openRegistry()
    expect(create(registry, 'a', { clusterIP: '10.96.0.10' }).spec.clusterIPs).toEqual(['10.96.0.10'])
    expect(failure(() => create(registry, 'b', { clusterIP: '10.96.0.10' })).message).toContain(
      'failed to allocate IP 10.96.0.10: provided IP is already allocated',
    )
    expect(failure(() => create(registry, 'b', { clusterIP: '10.97.0.1' })).message).toContain(
      'provided IP is not in the valid range. The range of valid IPs is 10.96.0.0/24',
    )
  })

  it('are one address, however they are written', () => {
    const { registry } = openRegistry(['fd00:96::/112'])
    create(registry, 'a', { clusterIP: 'fd00:96:0:0::A' })
    const booked = () => registry.find(ipAddresses, { namespace: '', name: 'fd00:96::a' })
    expect(booked()).toBeDefined()
    expect(failure(() => create(registry, 'b', { clusterIP: 'fd00:96::a' })).message).toContain('already allocated')
    registry.delete(services, at('a'))
    expect(booked()).toBeUndefined()
  })

  it('run out', () => {
    const { registry } = openRegistry(['10.96.0.0/30'])
    create(registry, 'a', {})
    create(registry, 'b', {})
    expect(failure(() => create(registry, 'c', {}))).toMatchObject({ code: 500, reason: 'InternalError' })
  })

  it.each([
    [{}, ['IPv4'], 'SingleStack'],
    [{ ipFamilies: ['IPv6'] }, ['IPv6'], 'SingleStack'],
    [{ ipFamilyPolicy: 'PreferDualStack' }, ['IPv4', 'IPv6'], 'PreferDualStack'],
    [{ ipFamilyPolicy: 'RequireDualStack', ipFamilies: ['IPv6'] }, ['IPv6', 'IPv4'], 'RequireDualStack'],
    [{ clusterIP: 'fd00:96::5' }, ['IPv6'], 'SingleStack'],
    [{ clusterIP: 'None' }, ['IPv4', 'IPv6'], 'RequireDualStack'],
    [{ clusterIP: 'None', selector: { a: 'b' } }, ['IPv4'], 'SingleStack'],
  ])('of %j on a dual-stack cluster: %j, %s', (spec, families, policy) => {
    const { registry } = openRegistry()
    const { ipFamilies, ipFamilyPolicy, clusterIPs = [] } = create(registry, 'a', spec).spec
    expect({ ipFamilies, ipFamilyPolicy }).toEqual({ ipFamilies: families, ipFamilyPolicy: policy })
    if (!clusterIPs.includes('None')) {
      expect(clusterIPs.map((ip) => (ip.includes(':') ? 'IPv6' : 'IPv4'))).toEqual(families)
    }
  })

  it('of one family only, on a cluster of one family', () => {
    const { registry } = openRegistry(['10.96.0.0/24'])
    expect(create(registry, 'a', { ipFamilyPolicy: 'PreferDualStack' }).spec.ipFamilies).toEqual(['IPv4'])
    expect(failure(() => create(registry, 'b', { ipFamilyPolicy: 'RequireDualStack' })).message).toContain(
      'this cluster is not configured for dual-stack services',
    )
  })

  it('get a second family, and lose it again', () => {
    const { registry } = openRegistry()
    create(registry, 'a', {})
    const up = registry.modify(services, at('a'), ({ spec }) => (spec.ipFamilyPolicy = 'RequireDualStack'))!
    expect(up.spec.clusterIPs).toHaveLength(2)
    const down = registry.modify(services, at('a'), ({ spec }) => (spec.ipFamilyPolicy = 'SingleStack'))!
    expect(down.spec).toMatchObject({ clusterIPs: [up.spec.clusterIPs![0]], ipFamilies: ['IPv4'] })
    expect(registry.find(ipAddresses, { namespace: '', name: up.spec.clusterIPs![1]! })).toBeUndefined()
  })

  it('go when the service becomes an ExternalName, and come back', () => {
    const { registry } = openRegistry()
    create(registry, 'a', {})
    const external = registry.modify(services, at('a'), ({ spec }) => {
      spec.type = 'ExternalName'
      spec.externalName = 'example.com'
    })!
    expect(external.spec).not.toHaveProperty('clusterIP')
    const back = registry.modify(services, at('a'), ({ spec }) => {
      spec.type = 'ClusterIP'
      delete spec.externalName
    })!
    expect(back.spec.clusterIP).toMatch(/^10\.96\.0\./)
  })

  it('survive an update that does not mention them', () => {
    const { registry } = openRegistry()
    const { clusterIPs } = create(registry, 'a', { type: 'NodePort' }).spec
    const again = registry.update(services, { metadata: at('a'), spec: { type: 'NodePort', ports: [{ port: 80 }] } })
    expect(again.object.spec.clusterIPs).toEqual(clusterIPs)
  })
})

describe('node ports', () => {
  const create = (registry: Registry, name: string, spec: object): Service =>
    registry.create(services, { metadata: at(name), spec: { type: 'NodePort', ports: [{ port: 80 }], ...spec } }).object

  it('are given out above the band of those that are asked for', () => {
    const { registry } = openRegistry()
    const port = create(registry, 'a', {}).spec.ports![0]!.nodePort!
    expect(port).toBeGreaterThanOrEqual(30_086)
    expect(port).toBeLessThanOrEqual(32_767)
  })

  it('can be asked for, in the range and once', () => {
    const { registry } = openRegistry()
    create(registry, 'a', { ports: [{ port: 80, nodePort: 30_000 }] })
    expect(failure(() => create(registry, 'b', { ports: [{ port: 80, nodePort: 30_000 }] })).message).toContain(
      'spec.ports[0].nodePort: Invalid value: 30000: provided port is already allocated',
    )
    expect(failure(() => create(registry, 'b', { ports: [{ port: 80, nodePort: 80 }] })).message).toContain(
      'provided port is not in the valid range. The range of valid ports is 30000-32767',
    )
    registry.delete(services, at('a'))
    create(registry, 'b', { ports: [{ port: 80, nodePort: 30_000 }] })
  })

  it('are shared by the protocols of a port', () => {
    const { registry } = openRegistry()
    const ports = [
      { name: 'tcp', port: 53 },
      { name: 'udp', port: 53, protocol: 'UDP' },
    ]
    const [tcp, udp] = create(registry, 'a', { ports }).spec.ports!
    expect(tcp!.nodePort).toBe(udp!.nodePort)
  })

  it('go with the type that has them', () => {
    const { registry } = openRegistry()
    create(registry, 'a', {})
    const plain = registry.modify(services, at('a'), ({ spec }) => (spec.type = 'ClusterIP'))!
    expect(plain.spec.ports).toEqual([{ protocol: 'TCP', port: 80, targetPort: 80 }])
    expect(plain.spec).not.toHaveProperty('externalTrafficPolicy')
  })

  it('are not given to a load balancer that wants none, and a health check port is where it is needed', () => {
    const { registry } = openRegistry()
    const without = create(registry, 'a', { type: 'LoadBalancer', allocateLoadBalancerNodePorts: false })
    expect(without.spec.ports![0]).not.toHaveProperty('nodePort')
    const local = create(registry, 'b', { type: 'LoadBalancer', externalTrafficPolicy: 'Local' })
    expect(local.spec.healthCheckNodePort).toBeGreaterThanOrEqual(30_000)
    const cluster = registry.modify(services, at('b'), ({ spec }) => (spec.externalTrafficPolicy = 'Cluster'))!
    expect(cluster.spec).not.toHaveProperty('healthCheckNodePort')
  })
})
