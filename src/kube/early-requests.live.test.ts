import { expect, test } from 'vitest'
import { TestApiServer } from '../../test/support/api-server/api-server.ts'
import { STATUS } from '../../test/support/api-server/faults.ts'
import { quietLog } from '../../test/support/api-server/quiet-log.ts'
import { RecordingHandler, until } from '../../test/support/api-server/recording-handler.ts'
import { openClusterSource } from './cluster-source.ts'
import type { EndpointSlice, Node, Service, ServiceCIDR } from './types.ts'

const kinds = ['services', 'slices', 'node', 'serviceCidrs'] as const

function openRig(server: TestApiServer) {
  const log = quietLog()
  const settings = { kubeconfig: '', master: server.url, qps: -1, manifests: '' }
  const source = openClusterSource(settings, log, () => {})
  const stopping = new AbortController()
  const handlers = {
    services: new RecordingHandler<Service>(),
    slices: new RecordingHandler<EndpointSlice>(),
    node: new RecordingHandler<Node>(),
    serviceCidrs: new RecordingHandler<ServiceCIDR>(),
  }
  const watch = () => source.watch({ nodeName: 'here', handlers, log, signal: stopping.signal })
  const lists = () => server.requests.filter(({ query }) => query['watch'] === undefined)
  return { source, handlers, stopping, watch, lists }
}

test('what is asked early is what the watch begins with: each list is sent once, before the watch', async () => {
  await using server = await TestApiServer.start()
  server.store.applyAll([{ kind: 'Service', metadata: { name: 'web' }, spec: { clusterIP: '10.0.0.1' } }])
  const { source, handlers, stopping, watch, lists } = openRig(server)
  source.ask('here')
  await until('lists asked for', () => lists().length === kinds.length)
  const watching = watch()
  await until('all synced', () => kinds.every((kind) => handlers[kind].isSynced))
  expect(lists().length).toBe(kinds.length)
  stopping.abort()
  await watching
  source.close()
})

test('an early request that fails is tried again, as any other', async () => {
  await using server = await TestApiServer.start()
  const { source, handlers, stopping, watch, lists } = openRig(server)
  server.fail({ on: 'list', resource: 'services', what: { type: 'status', status: STATUS.unavailable } })
  source.ask('here')
  const watching = watch()
  await until('all synced', () => kinds.every((kind) => handlers[kind].isSynced))
  expect(lists().length).toBe(kinds.length + 1)
  stopping.abort()
  await watching
  source.close()
})

test('ends with the signal in the middle of an answer', async () => {
  await using server = await TestApiServer.start()
  const { source, stopping, watch, lists } = openRig(server)
  server.fail({ on: 'list', resource: 'services', what: { type: 'slow', pieceBytes: 1, pauseMs: 1000 } })
  source.ask('here')
  await until('lists asked for', () => lists().length === kinds.length)
  const watching = watch()
  await until('a watch', () => server.requests.length > lists().length)
  stopping.abort()
  await watching
  source.close()
})
