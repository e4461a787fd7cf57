import { describe, expect, test } from 'vitest'
import { systemClock } from '../lib/clock.ts'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { silentLogger } from '../lib/log.ts'
import { coreMetrics } from '../metrics/kube-proxy.ts'
import { healthPage, serveHealth } from './health-server.ts'
import { ProxyHealth } from './proxy-health.ts'
import type { Reply } from './http-server.ts'

const t0 = Date.UTC(2026, 10, 15, 4, 41, 19, 130)
const node = { deleting: false, taints: [] }

function aProxy() {
  const clock = new ManualClock(t0)
  const health = new ProxyHealth({ clock, timeoutMs: 10_000 })
  health.setNode(node)
  const metrics = coreMetrics()
  const page = healthPage(health, metrics)
  const ask = (path: string, method = 'GET'): Reply =>
    page({ path, method, query: new URLSearchParams(), accept: '', body: () => Promise.resolve('') }) as Reply
  return { clock, health, metrics, ask, statusOf: (path: string) => ask(path).status }
}

describe('healthPage()', () => {
  test('answers in kube-proxy’s words', async () => {
    const { clock, health, ask } = aProxy()
    health.updated('IPv6')
    await clock.advance(28)
    health.updated('IPv4')
    await clock.advance(3729)
    expect(ask('/healthz')).toEqual({
      status: 200,
      headers: { 'Content-Type': 'application/json', 'X-Content-Type-Options': 'nosniff' },
      body: '{"lastUpdated":"2026-11-15T04:41:22.887Z","currentTime":"2026-11-15T04:41:22.887Z","nodeEligible":true,"healthy":true,"status":{"IPv4":{"lastUpdated":"2026-11-15T04:41:19.158Z","healthy":true},"IPv6":{"lastUpdated":"2026-11-15T04:41:19.13Z","healthy":true}}}',
    })
    expect(ask('/livez').body).toBe(
      '{"lastUpdated":"2026-11-15T04:41:22.887Z","currentTime":"2026-11-15T04:41:22.887Z","healthy":true,"status":{"IPv4":{"lastUpdated":"2026-11-15T04:41:19.158Z","healthy":true},"IPv6":{"lastUpdated":"2026-11-15T04:41:19.13Z","healthy":true}}}',
    )
  })

  test('a proxy that starts is healthy, even with changes waiting', async () => {
    const { clock, health, ask } = aProxy()
    expect(ask('/livez').body).toBe(
      '{"lastUpdated":"2026-11-15T04:41:19.13Z","currentTime":"2026-11-15T04:41:19.13Z","healthy":true}',
    )
    health.queued('IPv4')
    await clock.advance(60_000)
    expect(ask('/healthz').status).toBe(200)
  })

  test('a change that waits for the timeout makes both pages 503, with the time of the last update', async () => {
    const { clock, health, ask, statusOf } = aProxy()
    health.updated('IPv4')
    health.updated('IPv6')
    await clock.advance(60_000)
    expect(statusOf('/healthz')).toBe(200)
    health.queued('IPv4')
    await clock.advance(9999)
    expect([statusOf('/healthz'), statusOf('/livez')]).toEqual([200, 200])
    await clock.advance(1)
    expect([statusOf('/healthz'), statusOf('/livez')]).toEqual([503, 503])
    expect(ask('/healthz').body).toBe(
      '{"lastUpdated":"2026-11-15T04:41:19.13Z","currentTime":"2026-11-15T04:42:29.13Z","nodeEligible":true,"healthy":false,"status":{"IPv4":{"lastUpdated":"2026-11-15T04:41:19.13Z","healthy":false},"IPv6":{"lastUpdated":"2026-11-15T04:41:19.13Z","healthy":true}}}',
    )
    health.updated('IPv4')
    expect([statusOf('/healthz'), statusOf('/livez')]).toEqual([200, 200])
  })

  test('the oldest waiting change counts, however many follow it', async () => {
    const { clock, health, statusOf } = aProxy()
    health.updated('IPv4')
    for (let i = 0; i < 10; i++) {
      health.queued('IPv4')
      await clock.advance(1000)
    }
    expect(statusOf('/livez')).toBe(503)
  })

  test('a family that keeps up does not hide one that does not', async () => {
    const { clock, health, statusOf } = aProxy()
    health.updated('IPv4')
    health.updated('IPv6')
    health.queued('IPv6')
    health.queued('IPv4')
    await clock.advance(5000)
    health.updated('IPv4')
    await clock.advance(5000)
    expect(statusOf('/livez')).toBe(503)
  })

  test.each([
    ['is being deleted', { deleting: true, taints: [] }],
    ['is tainted by the autoscaler', { deleting: false, taints: ['ToBeDeletedByClusterAutoscaler'] }],
    ['is unknown', undefined],
  ])('a node that %s makes /healthz 503 and leaves /livez alone', (_what, gone) => {
    const { health, ask, statusOf } = aProxy()
    health.updated('IPv4')
    health.setNode(gone)
    expect([statusOf('/healthz'), statusOf('/livez')]).toEqual([503, 200])
    expect(JSON.parse(ask('/healthz').body as string)).toMatchObject({ nodeEligible: false, healthy: true })
    health.setNode({ deleting: false, taints: ['other'] })
    expect(statusOf('/healthz')).toBe(200)
  })

  test('a jump of the wall clock is no delay', async () => {
    const { clock, health, statusOf } = aProxy()
    health.updated('IPv4')
    health.queued('IPv4')
    clock.setWallClock(t0 + 3_600_000)
    expect(statusOf('/livez')).toBe(200)
    clock.setWallClock(t0 - 3_600_000)
    await clock.advance(10_000)
    expect(statusOf('/livez')).toBe(503)
  })

  test('setTimeoutMs() changes the limit for changes that already wait', async () => {
    const { clock, health, statusOf } = aProxy()
    health.updated('IPv4')
    health.queued('IPv4')
    await clock.advance(5000)
    health.setTimeoutMs(2000)
    expect(statusOf('/livez')).toBe(503)
  })

  test('counts what it answers, and answers any method but no other path', () => {
    const { health, ask, metrics } = aProxy()
    ask('/healthz')
    ask('/healthz', 'OPTIONS')
    health.setNode(undefined)
    ask('/healthz')
    ask('/livez')
    expect(ask('/').status).toBe(404)
    expect(ask('/healthz/').status).toBe(404)
    expect(metrics.healthz.with('200').value).toBe(2)
    expect(metrics.healthz.with('503').value).toBe(1)
    expect(metrics.livez.with('200').value).toBe(1)
  })
})

test('serveHealth() serves the page, to HEAD without a body', async () => {
  const { health, metrics } = aProxy()
  const server = serveHealth({
    address: '127.0.0.1:0',
    whenRefused: 'give up',
    clock: systemClock,
    log: silentLogger,
    health,
    counters: metrics,
  })!
  try {
    await server.ready
    const url = `http://127.0.0.1:${server.bound!.port}/healthz`
    const got = await fetch(url)
    const head = await fetch(url, { method: 'HEAD' })
    expect([got.status, head.status]).toEqual([200, 200])
    expect(await got.json()).toMatchObject({ healthy: true, nodeEligible: true })
    expect(Number(head.headers.get('content-length'))).toBeGreaterThan(50)
    expect(await head.text()).toBe('')
  } finally {
    await server.close()
  }
})
