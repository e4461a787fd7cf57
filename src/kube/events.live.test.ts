import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { TestApiServer, type ApiServerOptions } from '../../test/support/api-server/api-server.ts'
import { STATUS } from '../../test/support/api-server/faults.ts'
import { quietLog } from '../../test/support/api-server/quiet-log.ts'
import { until } from '../../test/support/api-server/recording-handler.ts'
import { ManualClock } from '../../test/support/manual-clock.ts'
import type { ApiClient } from './api-client.ts'
import { EventRecorder, type RecordedEvent } from './events.ts'
import { openApiClient } from './open-client.ts'

const STARTING: RecordedEvent = { type: 'Normal', reason: 'Starting', action: 'StartKubeProxy' }

let server: TestApiServer
let client: ApiClient
let stopping: AbortController
let outcomes: string[] = []
const clock = new ManualClock(Date.UTC(2026, 7, 1, 10))

async function recorder(options: ApiServerOptions = {}): Promise<EventRecorder> {
  server = await TestApiServer.start(options)
  server.store.apply({ kind: 'Namespace', metadata: { name: 'ns' } })
  client = openApiClient({ kubeconfig: '', master: server.url, qps: -1 }, quietLog())
  return new EventRecorder({
    client,
    nodeName: 'here',
    log: quietLog(),
    signal: stopping.signal,
    clock,
    onOutcome: (outcome) => void outcomes.push(outcome),
  })
}

beforeEach(() => {
  stopping = new AbortController()
  outcomes = []
})
afterEach(async () => {
  stopping.abort()
  client.close()
  await server.stop()
})

function sent(): { path: string; body: Record<string, unknown> }[] {
  return server.requests.map(({ path, body }) => ({ path, body: JSON.parse(body) as Record<string, unknown> }))
}

describe('EventRecorder.record()', () => {
  test('creates an event about the node', async () => {
    const events = await recorder()
    events.record({ ...STARTING, note: 'hello' })
    await until('it is sent', () => server.requests.length === 1)
    const [{ path, body } = { path: '', body: {} }] = sent()
    expect(path).toBe('/apis/events.k8s.io/v1/namespaces/default/events')
    expect(body).toMatchObject({
      apiVersion: 'events.k8s.io/v1',
      kind: 'Event',
      metadata: { namespace: 'default', name: expect.stringMatching(/^here\.[0-9a-f]{16}$/) as string },
      eventTime: '2026-08-01T10:00:00.000000Z',
      type: 'Normal',
      reason: 'Starting',
      action: 'StartKubeProxy',
      note: 'hello',
      reportingController: 'kube-proxy',
      regarding: { kind: 'Node', name: 'here', uid: 'here' },
    })
  })

  test('creates an event about a service in its namespace', async () => {
    const events = await recorder()
    events.record({ ...STARTING, service: { namespace: 'ns', name: 'web' } })
    await until('it is sent', () => server.requests.length === 1)
    expect(sent()[0]).toMatchObject({
      path: '/apis/events.k8s.io/v1/namespaces/ns/events',
      body: { regarding: { kind: 'Service', namespace: 'ns', name: 'web' } },
    })
  })

  test('uses core/v1 where the server has no events.k8s.io', async () => {
    const events = await recorder()
    server.fail({ on: 'any', what: { type: 'status', status: { code: 404, reason: 'NotFound', message: 'no' } } })
    events.record(STARTING)
    await until('it is sent', () => server.requests.length === 2)
    expect(sent()[1]).toMatchObject({
      path: '/api/v1/namespaces/default/events',
      body: { apiVersion: 'v1', involvedObject: { name: 'here' }, count: 1, firstTimestamp: '2026-08-01T10:00:00Z' },
    })
  })

  test('does not repeat itself within ten minutes', async () => {
    const events = await recorder()
    events.record(STARTING)
    events.record(STARTING)
    events.record({ ...STARTING, reason: 'Other' })
    await until('two are sent', () => server.requests.length === 2)
    await clock.advance(10 * 60_000)
    events.record(STARTING)
    await until('three are sent', () => server.requests.length === 3)
    expect(sent().map(({ body }) => body['reason'])).toEqual(['Starting', 'Other', 'Starting'])
  })

  test('repeats itself after ten minutes, wherever the clock of the wall is moved', async () => {
    const events = await recorder()
    clock.setWallClock(Date.UTC(2036, 0, 1))
    events.record(STARTING)
    clock.setWallClock(Date.UTC(2026, 7, 1, 10))
    await clock.advance(10 * 60_000)
    events.record(STARTING)
    await until('both are sent', () => server.requests.length === 2)
  })

  test('drops what comes in floods about one Service, and no other', async () => {
    const events = await recorder()
    for (let i = 0; i < 100; i++) {
      events.record({ ...STARTING, note: `${i}`, service: { namespace: 'ns', name: 'web' } })
      await until('it is sent', () => server.requests.length === Math.min(i + 1, 25))
    }
    expect(outcomes.filter((outcome) => outcome === 'dropped')).toHaveLength(75)
    events.record({ ...STARTING, service: { namespace: 'ns', name: 'other' } })
    await until('it is sent', () => server.requests.length === 26)
  })

  test('tries again while the server is away, and drops what comes in floods', async () => {
    const events = await recorder()
    server.fail({ on: 'any', what: { type: 'status', status: STATUS.unavailable } })
    for (let i = 0; i < 100; i++) events.record({ ...STARTING, note: String(i) })
    await until('it was refused', () => server.requests.length === 1 && clock.waiting > 0)
    await clock.advance(10_000)
    await until('the rest is sent', () => server.requests.length >= 34)
    await new Promise((resolve) => setTimeout(resolve, 20))
    expect(server.requests.length).toBe(34)
  })

  test('gives up on an event that the server refuses for what it is', async () => {
    const events = await recorder()
    server.fail({ on: 'any', what: { type: 'status', status: { code: 422, reason: 'Invalid', message: 'no' } } })
    events.record(STARTING)
    events.record({ ...STARTING, reason: 'Next' })
    await until('the next is sent', () => outcomes.length === 3)
    expect(sent()[1]?.body['reason']).toBe('Next')
    expect(outcomes).toEqual(['failed', 'dropped', 'sent'])
  })

  test('no answer: the event is sent later', async () => {
    const events = await recorder()
    server.fail({ on: 'any', what: { type: 'drop' } })
    events.record(STARTING)
    await until('it waits', () => outcomes.length === 1 && clock.waiting > 0)
    await clock.advance(10_000)
    await until('it is sent', () => outcomes.length === 2)
    expect(outcomes).toEqual(['failed', 'sent'])
  })

  test.each([
    ['403', STATUS.forbidden],
    ['429', { code: 429, reason: 'TooManyRequests', message: 'later' }],
    ['500', { code: 500, reason: 'InternalError', message: 'a webhook is away' }],
    ['503', STATUS.unavailable],
  ])('%s: the event is sent later', async (code, status) => {
    const events = await recorder()
    server.fail({ on: 'any', what: { type: 'status', status } })
    events.record(STARTING)
    events.record({ ...STARTING, reason: 'Next' })
    // What says something about one event does not keep the next waiting.
    const waits = code === '429' || code === '503'
    await until('it waits', () => server.requests.length === (waits ? 1 : 2) && clock.waiting > 0)
    await clock.advance(10_000)
    await until('both are sent', () => outcomes.length === 3)
    expect(outcomes.toSorted()).toEqual(['failed', 'sent', 'sent'])
    expect(sent().map(({ body }) => body['reason'])).toEqual(['Starting', 'Next', 'Starting'])
  })

  test('shortens notes to what the API accepts, without cutting a character', async () => {
    const events = await recorder()
    events.record({ ...STARTING, note: 'ä'.repeat(1000) })
    await until('it is sent', () => server.requests.length === 1)
    const note = sent()[0]?.body['note'] as string
    expect(Buffer.byteLength(note)).toBeLessThanOrEqual(1024)
    expect(note).toMatch(/^ä+\.\.\.$/)
  })
})
