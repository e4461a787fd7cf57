// All controllers together, over a registry whose time stands still.

import { describe, expect, it } from 'vitest'
import { openCluster } from '../../../../test/support/sandbox-objects.ts'
import {
  configMaps,
  deployments,
  endpoints,
  endpointSlices,
  events,
  namespaces,
  nodes,
  pods,
  replicaSets,
  replicationControllers,
  serviceCidrs,
  services,
} from '../apiserver/resources/table.ts'
import { isReady } from '../apiserver/objects/pod.ts'
import type { FailureMode, PodRuntime, ProbeResult, RuntimePod } from './pod-runtime.ts'
import type { Registry } from '../apiserver/registry/registry.ts'

const at = (name: string) => ({ namespace: 'default', name })
const template = (image = 'whoami:1', spec: object = {}) => ({
  metadata: { labels: { app: 'whoami' } },
  spec: { containers: [{ name: 'whoami', image, ports: [{ containerPort: 3000 }] }], ...spec },
})
const controller = (replicas: number, spec: object = {}) => ({
  metadata: at('whoami'),
  spec: { replicas, selector: { app: 'whoami' }, template: template('whoami:1', spec) },
})
const deployment = (replicas: number, image = 'whoami:1') => ({
  metadata: at('whoami'),
  spec: { replicas, selector: { matchLabels: { app: 'whoami' } }, template: template(image) },
})
const service = (spec: object = {}) => ({
  metadata: at('whoami'),
  spec: { selector: { app: 'whoami' }, ports: [{ port: 3000 }], ...spec },
})
const allPods = (registry: Registry) =>
  registry
    .collection(pods)
    .list()
    .map(({ object }) => object)
const slice = (registry: Registry) =>
  registry
    .collection(endpointSlices)
    .list()
    .find(({ object }) => object.metadata.labels?.['kubernetes.io/service-name'] === 'whoami')?.object

/** Records every call, and starts pods when the test says so. */
class RecordingRuntime implements PodRuntime {
  readonly calls: string[] = []
  readonly pods = new Map<string, RuntimePod>()
  startFails: Error | undefined

  async start(pod: RuntimePod): Promise<void> {
    this.calls.push(`start ${pod.nodeName} ${pod.ips.join(' ')}`)
    if (this.startFails !== undefined) throw this.startFails
    this.pods.set(pod.key, pod)
  }

  async stop({ key }: RuntimePod, graceSeconds: number): Promise<void> {
    this.calls.push(`stop ${graceSeconds}`)
    this.pods.delete(key)
  }

  async setFailure(_pod: RuntimePod, mode: FailureMode): Promise<void> {
    this.calls.push(`fail ${mode}`)
  }

  probeResult: ProbeResult = { isGood: true, message: '' }

  async restart(): Promise<void> {
    this.calls.push('restart')
  }

  async probe(): Promise<ProbeResult> {
    return this.probeResult
  }
}

describe('a ReplicationController', () => {
  it('gets its pods, spread over the nodes, with addresses, ready', async () => {
    await using cluster = await openCluster()
    const { registry } = cluster
    registry.create(replicationControllers, controller(3))
    await cluster.settle()
    expect(allPods(registry).filter(({ spec }) => spec.nodeName === 'node-1')).toHaveLength(2)
    expect(allPods(registry).filter(({ spec }) => spec.nodeName === 'node-2')).toHaveLength(1)
    expect(allPods(registry).every(isReady)).toBe(true)
    for (const { metadata, status } of allPods(registry)) {
      expect(metadata.name).toMatch(/^whoami-[a-z0-9]{5}$/)
      expect(status.podIPs?.map(({ ip }) => ip.includes(':'))).toEqual([false, true])
    }
    expect(registry.get(replicationControllers, at('whoami')).object.status).toMatchObject({
      replicas: 3,
      readyReplicas: 3,
    })
  })

  it('replaces a pod that is deleted, at once', async () => {
    await using cluster = await openCluster()
    const { registry } = cluster
    registry.create(replicationControllers, controller(1))
    await cluster.settle()
    const [first] = allPods(registry)
    registry.delete(pods, at(first!.metadata.name))
    await cluster.settle()
    expect(allPods(registry)).toHaveLength(2)
    await cluster.clock.advance(2000)
    await cluster.settle()
    expect(allPods(registry)).toHaveLength(1)
    expect(allPods(registry)[0]!.metadata.name).not.toBe(first!.metadata.name)
  })
})

describe('a Service', () => {
  it('follows its pods: ready, not ready, ending, gone', async () => {
    await using cluster = await openCluster()
    const { registry, clock } = cluster
    registry.create(replicationControllers, controller(1))
    registry.create(services, service())
    await cluster.settle()
    const [pod] = allPods(registry)
    const conditions = () => slice(registry)?.endpoints?.map((endpoint) => endpoint.conditions)
    expect(conditions()).toEqual([{ ready: true, serving: true, terminating: false }])
    expect(registry.get(endpoints, at('whoami')).object.subsets).toMatchObject([
      { addresses: [{ ip: pod!.status.podIP }], ports: [{ port: 3000 }] },
    ])
    registry.modify(
      pods,
      at(pod!.metadata.name),
      ({ metadata }) => (metadata.annotations = { 'sandbox/ready': 'false' }),
    )
    await cluster.settle()
    expect(conditions()).toEqual([{ ready: false, serving: false, terminating: false }])
    registry.modify(pods, at(pod!.metadata.name), ({ metadata }) => (metadata.annotations = {}))
    await cluster.settle()
    registry.delete(replicationControllers, at('whoami'), { propagationPolicy: 'Background' })
    await cluster.settle()
    expect(conditions()).toEqual([{ ready: false, serving: true, terminating: true }])
    await clock.advance(2000)
    await cluster.settle()
    expect(conditions()).toBeUndefined()
    expect(slice(registry)).toMatchObject({ endpoints: null })
  })

  it('takes its endpoints along', async () => {
    await using cluster = await openCluster()
    const { registry } = cluster
    registry.create(services, service())
    await cluster.settle()
    registry.delete(services, at('whoami'))
    await cluster.settle()
    expect(slice(registry)).toBeUndefined()
    expect(registry.find(endpoints, at('whoami'))).toBeUndefined()
  })

  it('of type LoadBalancer gets an address, and gives it back', async () => {
    await using cluster = await openCluster()
    const { registry } = cluster
    const ingress = () => registry.find(services, at('whoami'))?.object.status.loadBalancer.ingress
    registry.create(services, service({ type: 'LoadBalancer', ipFamilyPolicy: 'PreferDualStack' }))
    await cluster.settle()
    expect(ingress()).toEqual([
      { ip: '192.0.2.1', ipMode: 'VIP' },
      { ip: '2001:db8::1', ipMode: 'VIP' },
    ])
    registry.modify(services, at('whoami'), ({ spec }) => (spec.type = 'NodePort'))
    await cluster.settle()
    expect(ingress()).toBeUndefined()
  })

  it('without a selector has what the user wrote into its Endpoints', async () => {
    await using cluster = await openCluster()
    const { registry } = cluster
    registry.create(services, { metadata: at('whoami'), spec: { ports: [{ port: 80 }] } })
    registry.create(endpoints, {
      metadata: at('whoami'),
      subsets: [{ addresses: [{ ip: '10.9.9.9' }], ports: [{ port: 80 }] }],
    })
    await cluster.settle()
    expect(slice(registry)).toMatchObject({ addressType: 'IPv4', endpoints: [{ addresses: ['10.9.9.9'] }] })
    registry.delete(endpoints, at('whoami'))
    await cluster.settle()
    expect(slice(registry)).toBeUndefined()
  })
})

describe('a Deployment', () => {
  it('rolls out, and back', async () => {
    await using cluster = await openCluster()
    const { registry, clock } = cluster
    const images = () => new Set(allPods(registry).map(({ spec }) => spec.containers[0]?.image))
    registry.create(deployments, deployment(3))
    await cluster.settle()
    expect(registry.get(deployments, at('whoami')).object.status).toMatchObject({
      availableReplicas: 3,
      updatedReplicas: 3,
    })
    registry.modify(deployments, at('whoami'), ({ spec }) => (spec.template.spec.containers[0]!.image = 'whoami:2'))
    await cluster.settle()
    await clock.advance(10_000)
    await cluster.settle()
    expect(images()).toEqual(new Set(['whoami:2']))
    const revisions = () =>
      registry
        .collection(replicaSets)
        .list()
        .map(
          ({ object }) =>
            `${object.metadata.annotations?.['deployment.kubernetes.io/revision']}: ${object.spec.replicas}`,
        )
        .sort()
    expect(revisions()).toEqual(['1: 0', '2: 3'])
    registry.modify(deployments, at('whoami'), ({ spec }) => (spec.template.spec.containers[0]!.image = 'whoami:1'))
    await cluster.settle()
    await clock.advance(10_000)
    await cluster.settle()
    expect(images()).toEqual(new Set(['whoami:1']))
    expect(revisions()).toEqual(['2: 0', '3: 3'])
  })

  it('takes everything along that it made', async () => {
    await using cluster = await openCluster()
    const { registry, clock } = cluster
    registry.create(deployments, deployment(2))
    await cluster.settle()
    registry.delete(deployments, at('whoami'), { propagationPolicy: 'Foreground' })
    await cluster.settle()
    // In the foreground, what it owns goes first.
    expect(registry.find(deployments, at('whoami'))).toBeDefined()
    await clock.advance(5000)
    await cluster.settle()
    expect(registry.find(deployments, at('whoami'))).toBeUndefined()
    expect(registry.collection(replicaSets).size).toBe(0)
    expect(allPods(registry)).toEqual([])
  })

  it('leaves its sets behind when they are to be orphans', async () => {
    await using cluster = await openCluster()
    const { registry } = cluster
    registry.create(deployments, deployment(1))
    await cluster.settle()
    registry.delete(deployments, at('whoami'), { propagationPolicy: 'Orphan' })
    await cluster.settle()
    expect(registry.find(deployments, at('whoami'))).toBeUndefined()
    const [set] = registry.collection(replicaSets).list()
    expect(set?.object.metadata.ownerReferences).toBeUndefined()
    expect(allPods(registry)).toHaveLength(1)
  })
})

describe('the kubelet', () => {
  it('starts a pod with what it needs to know, and stops it after it has drained', async () => {
    const runtime = new RecordingRuntime()
    await using cluster = await openCluster({ runtime, drainSeconds: 3 })
    const { registry, clock } = cluster
    registry.create(pods, { ...template(), metadata: at('a') })
    await cluster.settle()
    expect(runtime.calls).toEqual(['start node-1 10.64.0.2 fd00:64::2'])
    registry.delete(pods, at('a'))
    await cluster.settle()
    await clock.advance(2900)
    expect(runtime.pods.has('default/a')).toBe(true)
    expect(registry.get(pods, at('a')).object.status.phase).toBe('Running')
    await clock.advance(200)
    await cluster.settle()
    expect(runtime.calls.at(-1)).toBe('stop 27')
    expect(registry.find(pods, at('a'))).toBeUndefined()
  })

  it('lets a preStop sleep decide, within the grace period', async () => {
    const runtime = new RecordingRuntime()
    await using cluster = await openCluster({ runtime })
    const { registry, clock } = cluster
    const containers = [{ name: 'c', image: 'i', lifecycle: { preStop: { sleep: { seconds: 20 } } } }]
    registry.create(pods, { metadata: at('a'), spec: { containers } })
    await cluster.settle()
    registry.delete(pods, at('a'))
    await clock.advance(19_000)
    expect(runtime.pods.size).toBe(1)
    registry.delete(pods, at('a'), { gracePeriodSeconds: 1 })
    await clock.advance(1100)
    await cluster.settle()
    expect(registry.find(pods, at('a'))).toBeUndefined()
  })

  it('lets probes decide: ready when they say so, restarted when they say so for long enough', async () => {
    const runtime = new RecordingRuntime()
    runtime.probeResult = { isGood: false, message: 'no answer' }
    await using cluster = await openCluster({ runtime })
    const { registry, clock } = cluster
    const readinessProbe = { tcpSocket: { port: 1 }, periodSeconds: 5, initialDelaySeconds: 2 }
    const livenessProbe = { tcpSocket: { port: 1 }, periodSeconds: 10, failureThreshold: 2, initialDelaySeconds: 20 }
    registry.create(pods, {
      metadata: at('a'),
      spec: { containers: [{ name: 'c', image: 'i', readinessProbe, livenessProbe }] },
    })
    await cluster.settle()
    const ready = () => isReady(registry.get(pods, at('a')).object)
    expect(ready()).toBe(false)
    runtime.probeResult = { isGood: true, message: '' }
    await clock.advance(1900)
    expect(ready()).toBe(false)
    await clock.advance(200)
    await cluster.settle()
    expect(ready()).toBe(true)
    runtime.probeResult = { isGood: false, message: 'no answer' }
    await clock.advance(10_000)
    await cluster.settle()
    // Three failures of readiness are not there yet.
    expect(ready()).toBe(true)
    await clock.advance(5000)
    await cluster.settle()
    expect(ready()).toBe(false)
    await clock.advance(15_000)
    await cluster.settle()
    expect(runtime.calls).toContain('restart')
    expect(registry.get(pods, at('a')).object.status.containerStatuses?.[0]?.restartCount).toBe(1)
    const messages = registry
      .collection(events)
      .list()
      .map(({ object }) => object.message)
    expect(messages).toContain('Readiness probe failed: no answer')
    expect(messages).toContain('Container c failed liveness probe, will be restarted')
  })

  it('stops a pod at once that is deleted by force', async () => {
    const runtime = new RecordingRuntime()
    await using cluster = await openCluster({ runtime })
    cluster.registry.create(pods, { ...template(), metadata: at('a') })
    await cluster.settle()
    cluster.registry.delete(pods, at('a'), { gracePeriodSeconds: 0 })
    await cluster.settle()
    expect(runtime.calls.at(-1)).toBe('stop 0')
    expect(runtime.pods.size).toBe(0)
  })

  it('has the old pod of a name stopped before the new one is started', async () => {
    const runtime = new RecordingRuntime()
    await using cluster = await openCluster({ runtime })
    cluster.registry.create(pods, { ...template(), metadata: at('a') })
    await cluster.settle()
    cluster.registry.delete(pods, at('a'), { gracePeriodSeconds: 0 })
    cluster.registry.create(pods, { ...template(), metadata: at('a') })
    await cluster.settle()
    expect(runtime.calls.map((call) => call.split(' ')[0])).toEqual(['start', 'stop', 'start'])
    expect(isReady(cluster.registry.get(pods, at('a')).object)).toBe(true)
  })

  it('says why a pod does not start, and tries again', async () => {
    const runtime = new RecordingRuntime()
    runtime.startFails = new Error('no room')
    await using cluster = await openCluster({ runtime })
    const { registry, clock } = cluster
    registry.create(pods, { ...template(), metadata: at('a') })
    await cluster.settle()
    const state = () => registry.get(pods, at('a')).object.status.containerStatuses?.[0]?.state
    expect(state()).toEqual({ waiting: { reason: 'CreateContainerError', message: 'no room' } })
    runtime.startFails = undefined
    await clock.advance(1000)
    await cluster.settle()
    expect(state()).toHaveProperty('running')
  })

  it('makes pods fail as annotated, and shows that a dead one is dead', async () => {
    const runtime = new RecordingRuntime()
    await using cluster = await openCluster({ runtime })
    const { registry } = cluster
    registry.create(pods, { ...template(), metadata: at('a') })
    await cluster.settle()
    const annotate = async (fail: string | undefined) => {
      registry.modify(
        pods,
        at('a'),
        ({ metadata }) => (metadata.annotations = fail === undefined ? {} : { 'sandbox/fail': fail }),
      )
      await cluster.settle()
      return registry.get(pods, at('a')).object
    }
    expect(isReady(await annotate('hang'))).toBe(true)
    const dead = await annotate('die')
    expect(isReady(dead)).toBe(false)
    expect(dead.status.containerStatuses?.[0]).toMatchObject({
      restartCount: 1,
      state: { waiting: { reason: 'CrashLoopBackOff' } },
      lastState: { terminated: { exitCode: 137 } },
    })
    expect(isReady(await annotate(undefined))).toBe(true)
    expect(runtime.calls.slice(1)).toEqual(['fail hang', 'fail die', 'fail none'])
  })

  it('gives a pod on the host network the addresses of its node', async () => {
    await using cluster = await openCluster()
    cluster.registry.create(pods, { ...template('i', { hostNetwork: true }), metadata: at('a') })
    await cluster.settle()
    expect(cluster.registry.get(pods, at('a')).object.status.podIPs).toEqual([{ ip: '172.30.0.1' }])
  })

  it('stops everything when the controllers are closed', async () => {
    const runtime = new RecordingRuntime()
    const cluster = await openCluster({ runtime })
    cluster.registry.create(replicationControllers, controller(3))
    await cluster.settle()
    expect(runtime.pods.size).toBe(3)
    await cluster.controllers.close()
    expect(runtime.pods.size).toBe(0)
  })
})

describe('a node', () => {
  it('that is cordoned gets no pods, and the waiting ones come when it is not', async () => {
    await using cluster = await openCluster()
    const { registry } = cluster
    for (const name of ['node-1', 'node-2']) {
      registry.modify(nodes, { namespace: '', name }, ({ spec }) => (spec.unschedulable = true))
    }
    registry.create(pods, { ...template(), metadata: at('a') })
    await cluster.settle()
    expect(registry.get(pods, at('a')).object.status.conditions).toMatchObject([
      { type: 'PodScheduled', reason: 'Unschedulable' },
    ])
    registry.modify(nodes, { namespace: '', name: 'node-2' }, ({ spec }) => delete spec.unschedulable)
    await cluster.settle()
    expect(registry.get(pods, at('a')).object.spec.nodeName).toBe('node-2')
  })
})

describe('a namespace', () => {
  it('is emptied before it goes', async () => {
    await using cluster = await openCluster()
    const { registry, clock } = cluster
    registry.create(namespaces, { metadata: { name: 'demo' } })
    registry.create(configMaps, { metadata: { namespace: 'demo', name: 'a' } })
    registry.create(pods, { ...template(), metadata: { namespace: 'demo', name: 'p' } })
    await cluster.settle()
    registry.delete(namespaces, { namespace: '', name: 'demo' })
    await cluster.settle()
    expect(registry.find(configMaps, { namespace: 'demo', name: 'a' })).toBeUndefined()
    expect(registry.get(namespaces, { namespace: '', name: 'demo' }).object.status.phase).toBe('Terminating')
    await clock.advance(3000)
    await cluster.settle()
    expect(registry.find(namespaces, { namespace: '', name: 'demo' })).toBeUndefined()
  })
})

describe('a ServiceCIDR', () => {
  it('gives addresses when it is there, and stays while they are used', async () => {
    await using cluster = await openCluster()
    const { registry } = cluster
    const place = { namespace: '', name: 'more' }
    registry.create(serviceCidrs, { metadata: { name: 'more' }, spec: { cidrs: ['10.200.0.0/24'] } })
    await cluster.settle()
    registry.create(services, service({ clusterIP: '10.200.0.5' }))
    registry.delete(serviceCidrs, place)
    await cluster.settle()
    expect(registry.get(serviceCidrs, place).object.status.conditions).toMatchObject([
      { type: 'Ready', status: 'False' },
    ])
    registry.delete(services, at('whoami'))
    await cluster.settle()
    expect(registry.find(serviceCidrs, place)).toBeUndefined()
  })
})

describe('events', () => {
  it('record the life of a pod, and are removed after an hour', async () => {
    await using cluster = await openCluster()
    const { registry, clock } = cluster
    registry.create(replicationControllers, controller(1))
    await cluster.settle()
    const reasons = () =>
      registry
        .collection(events)
        .list()
        .map(({ object }) => object.reason ?? '')
        .sort()
    expect(reasons()).toEqual(['Created', 'Pulled', 'Scheduled', 'Started', 'SuccessfulCreate'])
    await clock.advance(62 * 60_000)
    expect(reasons()).toEqual([])
  })
})
