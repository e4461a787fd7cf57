import { afterEach, describe, expect, test } from 'vitest'
import { TestApiServer, type ApiServerOptions } from '../../test/support/api-server/api-server.ts'
import { STATUS } from '../../test/support/api-server/faults.ts'
import { RESOURCES, type ApiObject } from '../../test/support/api-server/objects.ts'
import { quietLog, type QuietLog } from '../../test/support/api-server/quiet-log.ts'
import { RecordingHandler, until } from '../../test/support/api-server/recording-handler.ts'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { openApiClient } from './open-client.ts'
import type { EndpointSlice, Node, Service, ServiceCIDR } from './types.ts'
import { watchCluster, type ClusterHandlers } from './watch-cluster.ts'

interface Rig {
  readonly server: TestApiServer
  readonly services: RecordingHandler<Service>
  readonly slices: RecordingHandler<EndpointSlice>
  readonly node: RecordingHandler<Node>
  readonly serviceCidrs: RecordingHandler<ServiceCIDR>
  readonly log: QuietLog
  readonly done: Promise<void>
  stop(): Promise<void>
}

const open: Rig[] = []
afterEach(async () => {
  for (const rig of open.splice(0)) await rig.stop()
})

const CLUSTER: readonly ApiObject[] = [
  { kind: 'Service', metadata: { name: 'web' }, spec: { clusterIP: '10.0.0.1' } },
  { kind: 'Service', metadata: { name: 'headless' }, spec: { clusterIP: 'None' } },
  {
    kind: 'Service',
    metadata: { name: 'other', labels: { 'service.kubernetes.io/service-proxy-name': 'x' } },
    spec: { clusterIP: '10.0.0.2' },
  },
  {
    kind: 'EndpointSlice',
    metadata: { name: 'web-1', labels: { 'kubernetes.io/service-name': 'web' } },
    addressType: 'IPv4',
    endpoints: [{ addresses: ['10.1.0.1'] }],
    ports: [{ port: 80 }],
  },
  {
    kind: 'EndpointSlice',
    metadata: { name: 'headless-1', labels: { 'service.kubernetes.io/headless': '' } },
    addressType: 'IPv4',
  },
  {
    kind: 'Endpoints',
    metadata: { name: 'web' },
    subsets: [{ addresses: [{ ip: '10.1.0.1' }], ports: [{ port: 80 }] }],
  },
  { kind: 'Endpoints', metadata: { name: 'h', labels: { 'service.kubernetes.io/headless': '' } }, subsets: [] },
  { kind: 'Node', metadata: { name: 'here' } },
  { kind: 'Node', metadata: { name: 'there' } },
  { kind: 'ServiceCIDR', metadata: { name: 'kubernetes' }, spec: { cidrs: ['10.0.0.0/16'] } },
]

interface RigOptions {
  readonly server?: ApiServerOptions
  readonly handlers?: Partial<ClusterHandlers>
  readonly before?: (server: TestApiServer) => void
  readonly clock?: ManualClock
}

async function start(options: RigOptions = {}): Promise<Rig> {
  const server = await TestApiServer.start(options.server)
  server.store.applyAll(CLUSTER)
  options.before?.(server)
  const log = quietLog()
  const client = openApiClient({ kubeconfig: '', master: server.url, qps: -1 }, log)
  const stopping = new AbortController()
  const handlers = {
    services: new RecordingHandler<Service>(),
    slices: new RecordingHandler<EndpointSlice>(),
    node: new RecordingHandler<Node>(),
    serviceCidrs: new RecordingHandler<ServiceCIDR>(),
  }
  const done = watchCluster({
    client,
    nodeName: 'here',
    handlers: { ...handlers, ...options.handlers },
    log,
    signal: stopping.signal,
    timing: { backoffMs: 4, maxBackoffMs: 16, ...(options.clock === undefined ? {} : { clock: options.clock }) },
  })
  done.catch(() => {})
  const stop = async (): Promise<void> => {
    stopping.abort()
    await done.catch(() => {})
    client.close()
    await server.stop()
  }
  const rig: Rig = { server, ...handlers, log, done, stop }
  open.push(rig)
  return rig
}

async function synced(rig: Rig): Promise<void> {
  const handlers = [rig.services, rig.slices, rig.node, rig.serviceCidrs]
  await until('all are synced', () => handlers.every((handler) => handler.isSynced))
}

describe('watchCluster()', () => {
  test('delivers what a proxy needs and nothing else', async () => {
    const rig = await start()
    await synced(rig)
    expect(rig.services.keys).toEqual(['default/web'])
    expect(rig.slices.keys).toEqual(['default/web-1'])
    expect(rig.node.keys).toEqual(['here'])
    expect(rig.serviceCidrs.keys).toEqual(['kubernetes'])
  })

  test('asks with upstream kube-proxy’s selectors, and accepts protobuf', async () => {
    const rig = await start()
    await synced(rig)
    const queries = new Map(rig.server.requests.map(({ path, query }) => [path, query]))
    expect(queries.get('/api/v1/services')).toMatchObject({
      labelSelector: '!service.kubernetes.io/service-proxy-name',
      fieldSelector: 'spec.clusterIP!=None',
    })
    const slices = queries.get('/apis/discovery.k8s.io/v1/endpointslices')
    expect(slices).toMatchObject({ labelSelector: '!service.kubernetes.io/headless' })
    expect(queries.get('/api/v1/nodes')).toMatchObject({ fieldSelector: 'metadata.name=here' })
    expect(rig.server.requests[0]?.headers.accept).toContain('protobuf')
  })

  test('watches Endpoints where the server has no EndpointSlices', async () => {
    const rig = await start({ server: { without: ['endpointslices'] } })
    await synced(rig)
    expect(rig.slices.keys).toEqual(['default/web-ipv4-0'])
    expect(rig.log.messages('info').join()).toContain('watching Endpoints instead')
    expect(rig.slices.notices).toEqual(['available', 'synced'])
    const both = { addresses: [{ ip: '10.1.0.2' }, { ip: 'fd00::2' }], ports: [{ port: 80 }] }
    rig.server.store.apply({ kind: 'Endpoints', metadata: { name: 'web' }, subsets: [both] })
    await until('there are two slices', () => rig.slices.keys.length === 2)
    const six = { addresses: [{ ip: 'fd00::2' }], ports: [{ port: 80 }] }
    rig.server.store.apply({ kind: 'Endpoints', metadata: { name: 'web' }, subsets: [six] })
    await until('the IPv4 slice is gone', () => rig.slices.keys.length === 1)
    expect(rig.slices.keys).toEqual(['default/web-ipv6-0'])
    rig.server.store.delete(
      RESOURCES.find(({ kind }) => kind === 'Endpoints')!,
      'default/web',
    )
    await until('all are gone', () => rig.slices.keys.length === 0)
  })

  test('one 404 is not the last word: EndpointSlices are asked for again, and take over', async () => {
    const clock = new ManualClock()
    const rig = await start({
      clock,
      before: (server) =>
        server.fail({
          on: 'list',
          resource: 'endpointslices',
          what: { type: 'status', status: { code: 404, reason: 'NotFound', message: 'not found' } },
        }),
    })
    await until('Endpoints are watched', () => rig.slices.keys.includes('default/web-ipv4-0'))
    expect(rig.slices.notices).toEqual(['available', 'synced'])
    await until('EndpointSlices take over', () => {
      void clock.advance(1000)
      return rig.slices.keys.join() === 'default/web-1'
    })
    expect(rig.slices.notices).toEqual(['available', 'synced', 'available'])
    rig.server.store.apply({ ...CLUSTER[3]!, metadata: { ...CLUSTER[3]!.metadata, name: 'web-2' } })
    await until('they are followed', () => rig.slices.keys.length === 2)
    rig.server.store.apply({ kind: 'Endpoints', metadata: { name: 'more' }, subsets: [] })
    expect(rig.slices.keys).toEqual(['default/web-1', 'default/web-2'])
  })

  test('what a list of EndpointSlices brought is gone when that was cut off, and there is none when it is asked for again', async () => {
    const rig = await start({
      before(server) {
        const one = CLUSTER[3]!
        const many = Array.from({ length: 50 }, (_, i) => ({ ...one, metadata: { ...one.metadata, name: `web-${i}` } }))
        server.store.applyAll(many)
        const onList = { on: 'list', resource: 'endpointslices' } as const
        server.fail({ ...onList, what: { type: 'cut', afterBytes: 4000 } })
        server.fail({
          ...onList,
          what: { type: 'status', status: { code: 404, reason: 'NotFound', message: 'not found' } },
        })
      },
    })
    await synced(rig)
    expect(rig.slices.keys).toEqual(['default/web-ipv4-0'])
    expect(rig.slices.events).toContain('set default/web-1')
  })

  test('lists headless services too where the server cannot leave them out', async () => {
    const rig = await start({ server: { serviceFieldSelectors: [] } })
    await synced(rig)
    expect(rig.services.keys).toEqual(['default/headless', 'default/web'])
    expect(rig.services.notices).toEqual(['available', 'synced'])
  })

  test.each([
    ['has no ServiceCIDRs', { without: ['servicecidrs'] }, undefined],
    ['does not let us see ServiceCIDRs', {}, STATUS.forbidden],
  ])('does without, where the server %s, and asks again later', async (_, options, status) => {
    const clock = new ManualClock()
    const rig = await start({
      server: options,
      clock,
      before(server) {
        if (status !== undefined)
          server.fail({ on: 'list', resource: 'servicecidrs', what: { type: 'status', status } })
      },
    })
    await synced(rig)
    expect(rig.serviceCidrs.notices).toEqual(['synced'])
    const asked = (): number => rig.server.requests.filter(({ path }) => path.includes('servicecidrs')).length
    expect(asked()).toBe(1)
    await clock.advance(10 * 60_000)
    await until('it was asked again', () => asked() > 1)
    expect(rig.serviceCidrs.notices.filter((notice) => notice === 'synced')).toHaveLength(1)
  })

  test('is synced without a node when there is no Node of that name, and hears when it comes', async () => {
    const rig = await start({
      before: (server) =>
        server.store.delete(
          RESOURCES.find(({ kind }) => kind === 'Node')!,
          'here',
        ),
    })
    await synced(rig)
    expect(rig.node.keys).toEqual([])
    rig.server.store.apply({ kind: 'Node', metadata: { name: 'here' } })
    await until('the node is there', () => rig.node.objects.has('here'))
  })

  test('goes on after the server was away, with all that changed meanwhile', async () => {
    const rig = await start()
    await synced(rig)
    await rig.server.stop()
    await until(
      'all are unavailable',
      () => !rig.services.isAvailable && !rig.slices.isAvailable && !rig.node.isAvailable,
    )
    rig.server.store.apply({ kind: 'Service', metadata: { name: 'new' }, spec: { clusterIP: '10.0.0.3' } })
    rig.server.store.compact()
    await rig.server.restart()
    await until('new is there', () => rig.services.objects.has('default/new'))
    await until('all are available', () => rig.services.isAvailable && rig.slices.isAvailable && rig.node.isAvailable)
    expect(rig.services.events.filter((event) => event === 'set default/web')).toHaveLength(1)
  })

  test('rejects with what a handler throws, and ends the other watches', async () => {
    const failing = {
      onEvents: () => {
        throw new RangeError('cannot take it')
      },
    }
    const rig = await start({ handlers: { services: failing } })
    await expect(rig.done).rejects.toThrow(RangeError)
    await until('no client watches', () => rig.server.watchCount() === 0)
  })

  test('resolves soon after the signal is aborted', async () => {
    const rig = await start()
    await synced(rig)
    await rig.stop()
    await expect(rig.done).resolves.toBeUndefined()
  })
})
