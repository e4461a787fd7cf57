// What the program tells about itself: health, health check node ports, metrics, its configuration.

import { afterAll, beforeAll, expect, test } from 'vitest'
import { external, node } from '../support/addresses.ts'
import { aNode, aService, aSlice } from '../support/builders.ts'
import { eventually } from '../support/eventually.ts'
import { healthzPort, metricsPort, startProxy } from '../support/proxy-process.ts'
import { patience } from '../support/patience.ts'
import { openRig } from '../support/rig.ts'
import { httpGet } from '../support/netns/probe.ts'
import type { ApiNode, ApiService, EndpointWish } from '../support/builders.ts'
import type { ProxyProcess } from '../support/proxy-process.ts'
import type { Rig } from '../support/rig.ts'

let rig: Rig
let proxy: ProxyProcess

beforeAll(async () => {
  rig = await openRig()
  proxy = await startProxy({ netns: rig.network.node, mode: 'nftables', kubeconfig: rig.cluster.kubeconfig })
  await rig.settled()
})
afterAll(async () => {
  await proxy[Symbol.asyncDispose]()
  await rig[Symbol.asyncDispose]()
})

test.for(['/healthz', '/livez'])('%s answers every client with the time of the last update', async (path) => {
  const answer = await httpGet(rig.network.external, { address: node.ip[4], port: healthzPort }, { path })
  expect(answer?.status).toBe(200)
  const body = JSON.parse(answer?.body ?? '') as { lastUpdated: string; currentTime: string }
  expect(Math.abs(Date.parse(body.currentTime) - Date.now())).toBeLessThan(5000 * patience())
  expect(Date.parse(body.lastUpdated)).toBeLessThanOrEqual(Date.parse(body.currentTime))
})

test.for([
  [
    'the autoscaler is about to delete it',
    { taints: [{ key: 'ToBeDeletedByClusterAutoscaler', effect: 'NoSchedule' }] },
    {},
  ],
  ['it is being deleted', {}, { deletionTimestamp: '2025-01-01T00:00:00Z' }],
] as const)('/healthz sends load balancers away from a node when %s; /livez does not', async ([, spec, metadata]) => {
  const leaving = aNode()
  rig.cluster.put({
    ...leaving,
    metadata: { ...leaving.metadata, ...metadata },
    spec: { ...leaving.spec, ...spec },
  } as ApiNode)
  await eventually('/healthz is 503', async () => complainUnless((await proxy.health())?.status, 503))
  expect((await proxy.health('/livez'))?.status).toBe(200)
  await rig.settled()
  rig.cluster.put(aNode())
  await eventually('/healthz is 200', async () => complainUnless((await proxy.health())?.status, 200))
})

test.for([4, 6] as const)('a health check node port counts the local endpoints over IPv%d', async (family) => {
  const service = aService({ families: [family], type: 'LoadBalancer', spec: { externalTrafficPolicy: 'Local' } })
  const ask = () => httpGet(rig.network.external, { address: node.ip[family], port: healthPort(service) })
  const expectCount = (...endpoints: EndpointWish[]) => {
    rig.cluster.put(service, aSlice(service, endpoints, { name: `${service.metadata.name}-slice` }))
    const count = endpoints.filter((endpoint) => typeof endpoint === 'string' && endpoint.startsWith('local')).length
    return eventually(`it counts ${count}`, async () => {
      const answer = await ask()
      const body = JSON.parse(answer?.body ?? '{}') as { localEndpoints?: number; service?: unknown }
      if (answer?.status !== (count > 0 ? 200 : 503) || body.localEndpoints !== count)
        return `${answer?.status} ${answer?.body}`
      expect(answer.headers['content-type']).toContain('json')
      expect(answer.headers['x-load-balancing-endpoint-weight']).toBe(`${count}`)
      expect(body.service).toEqual({ namespace: 'default', name: service.metadata.name })
      return undefined
    })
  }
  await expectCount('localB', 'localC', 'remoteA')
  await expectCount('localB', 'remoteA')
  await expectCount('remoteA')
  await expectCount({ pod: 'localB', ready: false, serving: true, terminating: true })
  await expectCount('localC')
  rig.cluster.remove(service)
  await eventually('the port closes', async () => ((await ask()) === undefined ? undefined : 'still open'))
})

test('a health check node port that is taken does no harm, and opens when it is free', async () => {
  const first = aService({ type: 'LoadBalancer', spec: { externalTrafficPolicy: 'Local' } })
  const port = healthPort(first)
  const second = aService({ type: 'LoadBalancer', spec: { externalTrafficPolicy: 'Local', healthCheckNodePort: port } })
  const nameAtPort = async () => {
    const answer = await httpGet(rig.network.external, { address: node.ip[4], port })
    return (JSON.parse(answer?.body ?? '{}') as { service?: { name: string } }).service?.name
  }
  rig.cluster.put(first, aSlice(first, ['localB']))
  await rig.settled()
  rig.cluster.put(second, aSlice(second, ['localB']))
  await rig.settled()
  expect(await nameAtPort()).toBe(first.metadata.name)
  rig.cluster.remove(first)
  await eventually('the other has it', async () => complainUnless(await nameAtPort(), second.metadata.name), {
    withinMs: 15_000,
  })
})

test('/metrics counts what happens', async () => {
  const names = [
    'sync_proxy_rules_duration_seconds_count',
    'sync_proxy_rules_last_timestamp_seconds',
    'sync_proxy_rules_service_changes_total',
    'sync_proxy_rules_endpoint_changes_total',
    'network_programming_duration_seconds_count',
  ].map((name) => `kubeproxy_${name}`)
  const before = await metrics()
  const service = aService()
  const now = new Date().toISOString()
  rig.cluster.put(
    service,
    aSlice(service, ['localB'], { annotations: { 'endpoints.kubernetes.io/last-change-trigger-time': now } }),
  )
  await rig.settled()
  const after = await metrics()
  for (const name of names) expect(after.get(name), name).toBeGreaterThan(before.get(name) ?? 0)
  await eventually('nothing is pending', async () =>
    complainUnless((await metrics()).get('kubeproxy_sync_proxy_rules_service_changes_pending'), 0),
  )
  expect(after.get('kubeproxy_sync_proxy_rules_nftables_sync_failures_total') ?? 0).toBe(0)
})

test('the metrics port tells mode, health and configuration to the node, and nothing to others', async () => {
  expect((await proxy.ask('/proxyMode'))?.body.trim()).toBe('nftables')
  expect((await proxy.ask('/healthz'))?.status).toBe(200)
  expect(JSON.stringify(JSON.parse((await proxy.ask('/configz'))?.body ?? ''))).toContain('nftables')
  for (const path of ['/flagz', '/statusz']) expect((await proxy.ask(path))?.status, path).toBe(200)
  expect((await proxy.ask('/no-such-page'))?.status).toBe(404)
  const outside = await httpGet(
    rig.network.external,
    { address: node.ip[4], port: metricsPort },
    { path: '/metrics', from: external.ip[4] },
  )
  expect(outside).toBeUndefined()
})

test('the start is reported as an Event on the Node', async () => {
  await eventually('there is an Event', () => {
    const posted = rig.cluster.server.requests.filter(
      (request) => request.method === 'POST' && request.path.includes('/events'),
    )
    return posted.some(({ body }) => body.includes(node.name) && body.includes('Starting'))
      ? undefined
      : `${posted.length} events`
  })
})

/** The values of all metrics; those with labels are summed. */
async function metrics(): Promise<Map<string, number>> {
  const sums = new Map<string, number>()
  for (const line of ((await proxy.ask('/metrics'))?.body ?? '').split('\n')) {
    const [, name, value] = /^([a-z_]+)(?:\{.*\})? (\S+)$/.exec(line) ?? []
    if (name !== undefined) sums.set(name, (sums.get(name) ?? 0) + Number(value))
  }
  return sums
}

function healthPort(service: ApiService): number {
  return Number(service.spec['healthCheckNodePort'])
}

function complainUnless<T>(value: T, expected: T): string | undefined {
  return value === expected ? undefined : `it is ${String(value)}`
}
