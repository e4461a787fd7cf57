import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { decodeFamilies } from '../../test/support/decode-families.ts'
import { systemClock } from '../lib/clock.ts'
import { silentLogger } from '../lib/log.ts'
import { createMetrics } from '../metrics/metrics.ts'
import { metricsPage, serveMetrics, type MetricsPageOptions } from './metrics-server.ts'
import type { Reply } from './http-server.ts'

const startSeconds = Date.UTC(2026, 10, 15, 4, 41, 18, 620) / 1000

function aProxy(options: Partial<MetricsPageOptions> = {}) {
  const build = { major: '1', minor: '37', version: 'v1.37.0', commit: '', treeState: '', buildDate: '' }
  const metrics = { ...createMetrics({ shown: [], build }), startSeconds }
  const verbosities: number[] = []
  const pages: MetricsPageOptions = {
    metrics,
    mode: () => 'nftables',
    config: () => ({ kind: 'KubeProxyConfiguration', mode: 'nftables' }),
    flags: () => ({ v: '2', 'cluster-cidr': '', 'bind-address': '0.0.0.0' }),
    version: { binary: '1.37.0', emulation: '1.37' },
    profiling: () => true,
    setVerbosity: (level) => verbosities.push(level),
    nowMs: () => (startSeconds + 3605.7) * 1000,
    ...options,
  }
  const page = metricsPage(pages)
  const ask = async (
    target: string,
    more: { method?: string; accept?: string; body?: string } = {},
  ): Promise<Reply> => {
    const [path, query] = target.split('?')
    const { method = 'GET', accept = '', body = '' } = more
    return page({ path: path!, method, accept, query: new URLSearchParams(query), body: () => Promise.resolve(body) })
  }
  return { ask, metrics, pages, verbosities, bodyOf: async (target: string) => textOf((await ask(target)).body) }
}

function textOf(body: Reply['body']): string {
  return typeof body === 'string' ? body : Buffer.concat([body].flat()).toString()
}

const text = { 'Content-Type': 'text/plain; charset=utf-8', 'X-Content-Type-Options': 'nosniff' }

describe('metricsPage()', () => {
  test('/metrics and /metrics/slis are Prometheus pages', async () => {
    const { ask, metrics, bodyOf } = aProxy()
    metrics.serviceChanges.with().inc(7)
    const reply = await ask('/metrics')
    expect(reply.headers).toEqual({
      'Content-Type': 'text/plain; version=0.0.4; charset=utf-8; escaping=underscores',
      'Process-Start-Time-Unix': '1794717678',
    })
    const page = Buffer.concat(reply.body as Uint8Array[]).toString()
    expect(page).toContain('\nkubeproxy_sync_proxy_rules_service_changes_total 7\n')
    expect(await bodyOf('/metrics/slis')).toContain('process_start_time_seconds')
    expect((await bodyOf('/metrics?name[]=process_max_fds&name[]=kubeproxyts_mode')).match(/^# TYPE .*$/gm)).toEqual([
      '# TYPE process_max_fds gauge',
    ])
  })

  test.each(['/metrics', '/metrics/slis'])('%s is protobuf for those who ask for it', async (path) => {
    const accept = 'application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited'
    const { headers, body } = await aProxy().ask(path, { accept })
    expect(headers['Content-Type']).toBe(`${accept.replaceAll(';', '; ')}; escaping=underscores`)
    const names = decodeFamilies(Buffer.concat(body as Uint8Array[])).map(({ name }) => name)
    expect(names).toContain('process_start_time_seconds')
  })

  test('/healthz says ok and is counted among the SLIs, which DELETE forgets', async () => {
    const { ask, bodyOf } = aProxy()
    expect(await ask('/healthz')).toEqual({ status: 200, headers: text, body: 'ok' })
    expect(await bodyOf('/healthz?verbose')).toBe('[+]ping ok\nhealthz check passed\n')
    expect(await bodyOf('/healthz/ping')).toBe('ok')
    const counted = 'kubernetes_healthchecks_total{name="ping",status="success",type="healthz"} 2'
    expect(await bodyOf('/metrics/slis')).toContain(counted)
    expect((await ask('/metrics/slis', { method: 'DELETE' })).body).toBe('metrics reset\n')
    expect(await bodyOf('/metrics/slis')).not.toContain(counted)
  })

  test('/proxyMode is the bare mode', async () => {
    expect(await aProxy().ask('/proxyMode')).toEqual({ status: 200, headers: text, body: 'nftables' })
  })

  test('/configz is the configuration under its group', async () => {
    expect(await aProxy().ask('/configz')).toEqual({
      status: 200,
      headers: { 'Content-Type': 'application/json', 'X-Content-Type-Options': 'nosniff' },
      body: '{"kubeproxy.config.k8s.io":{"kind":"KubeProxyConfiguration","mode":"nftables"}}',
    })
  })

  test('/flagz lists the flags by name', async () => {
    expect(await aProxy().bodyOf('/flagz')).toBe(`
kube-proxy flagz
Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is for debugging purposes only.
bind-address=0.0.0.0
cluster-cidr=
v=2
`)
  })

  test('/statusz has age, versions and pages', async () => {
    expect(await aProxy().bodyOf('/statusz')).toBe(`
kube-proxy statusz
Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is for debugging purposes only.

Started: Sun Nov 15 04:41:18 UTC 2026
Up: 1 hr 00 min 05 sec
Node version: ${process.version}
Binary version: 1.37.0
Emulation version: 1.37
Paths: /configz /flagz /healthz /metrics /proxyMode
`)
  })

  test('/flagz and /statusz come as objects when asked by kind and version', async () => {
    const { ask } = aProxy()
    const flagz = await ask('/flagz', { accept: 'application/json;v=v1beta1;g=config.k8s.io;as=Flagz' })
    expect(flagz.headers).toEqual({ 'Content-Type': 'application/json;g=config.k8s.io;v=v1beta1;as=Flagz' })
    expect(JSON.parse(flagz.body as string)).toEqual({
      kind: 'Flagz',
      apiVersion: 'config.k8s.io/v1beta1',
      metadata: { name: 'kube-proxy' },
      flags: { 'bind-address': '0.0.0.0', 'cluster-cidr': '', v: '2' },
    })
    const statusz = await ask('/statusz', { accept: 'application/yaml;v=v1alpha1;g=config.k8s.io;as=Statusz' })
    expect(statusz.headers).toEqual({
      'Content-Type': 'application/yaml;g=config.k8s.io;v=v1alpha1;as=Statusz',
      Warning: '299 - "This version of the statusz endpoint is deprecated. Please use a newer version."',
    })
    expect(parse(statusz.body as string)).toEqual({
      kind: 'Statusz',
      apiVersion: 'config.k8s.io/v1alpha1',
      metadata: { name: 'kube-proxy' },
      startTime: '2026-11-15T04:41:18Z',
      uptimeSeconds: 3605,
      goVersion: `node ${process.version}`,
      binaryVersion: '1.37.0',
      emulationVersion: '1.37',
      paths: ['/configz', '/flagz', '/healthz', '/metrics', '/proxyMode'],
    })
    const refused = await ask('/flagz', { accept: 'application/json' })
    expect(refused.status).toBe(406)
    expect(JSON.parse(refused.body as string)).toMatchObject({ kind: 'Status', reason: 'NotAcceptable', code: 406 })
  })

  test('/flagz and /statusz are absent when their gates are off', async () => {
    const { ask } = aProxy({ flags: undefined, version: undefined })
    expect([(await ask('/flagz')).status, (await ask('/statusz')).status]).toEqual([404, 404])
  })

  test.each(['/', '/nosuch', '/healthz/', '/metrics/', '//metrics', '/debugx', '/debug/', '/debug/vars', '/__proto__'])(
    '%s is not found',
    async (path) => {
      expect(await aProxy().ask(path)).toEqual({ status: 404, headers: text, body: '404 page not found\n' })
    },
  )

  test.each(['/metrics', '/metrics/slis', '/configz', '/flagz', '/statusz', '/proxyMode', '/healthz', '/debug/pprof/'])(
    '%s is for GET and HEAD',
    async (path) => {
      const { ask } = aProxy()
      const post = await ask(path, { method: 'POST' })
      expect([post.status, post.headers.Allow]).toEqual([405, 'GET, HEAD'])
      expect((await ask(path, { method: 'HEAD' })).status).toBe(200)
    },
  )

  test('PUT /debug/flags/v changes the verbosity', async () => {
    const { ask, verbosities } = aProxy()
    const put = await ask('/debug/flags/v', { method: 'PUT', body: '5' })
    expect([put.status, put.body]).toEqual([200, 'successfully set klog.logging.verbosity to 5\n'])
    for (const body of ['', 'x', '-1', '1.5', '1e3', '99999999999']) {
      expect((await ask('/debug/flags/v', { method: 'PUT', body })).status).toBe(400)
    }
    expect((await ask('/debug/flags/v')).status).toBe(406)
    expect(verbosities).toEqual([5])
  })

  test('/debug/ is absent without profiling, and appears when it is switched on', async () => {
    let profiling = false
    const { ask, verbosities } = aProxy({ profiling: () => profiling })
    const statuses = async (): Promise<number[]> => [
      (await ask('/debug/pprof')).status,
      (await ask('/debug/pprof/')).status,
      (await ask('/debug/flags')).status,
      (await ask('/debug/flags/v', { method: 'PUT', body: '5' })).status,
    ]
    expect(await statuses()).toEqual([404, 404, 404, 404])
    expect(verbosities).toEqual([])
    profiling = true
    expect(await statuses()).toEqual([302, 200, 200, 200])
  })

  test('/debug/pprof/ gives CPU and allocation profiles, and names what it does not have', async () => {
    const { ask } = aProxy()
    const cpu = await ask('/debug/pprof/profile?seconds=0.05')
    expect(cpu.headers['Content-Disposition']).toBe('attachment; filename="kube-proxy.cpuprofile"')
    expect(JSON.parse(cpu.body as string)).toHaveProperty('nodes')
    expect(JSON.parse((await ask('/debug/pprof/allocs?seconds=0.05')).body as string)).toHaveProperty('head')
    const both = await Promise.all([ask('/debug/pprof/profile?seconds=0.05'), ask('/debug/pprof/allocs?seconds=0.05')])
    expect(both.map(({ status }) => status)).toEqual([200, 409])
    expect((await ask('/debug/pprof/profile?seconds=x')).status).toBe(400)
    expect((await ask('/debug/pprof/profile?seconds=301')).status).toBe(400)
    // The token of this node is in it.
    expect(await ask('/debug/pprof/heap')).toMatchObject({
      status: 404,
      body: expect.stringContaining('would show credentials') as string,
    })
    const goroutine = await ask('/debug/pprof/goroutine')
    expect([goroutine.status, goroutine.body]).toEqual([404, expect.stringContaining('about the Go runtime')])
    expect((await ask('/debug/pprof/constructor')).status).toBe(404)
  })
})

test('serveMetrics() serves the pages and survives one that throws', async () => {
  const errors: unknown[] = []
  const {
    pages,
    verbosities,
    metrics: own,
  } = aProxy({
    config: () => {
      throw new Error('broken')
    },
  })
  const server = serveMetrics({
    address: '127.0.0.1:0',
    whenRefused: 'give up',
    clock: systemClock,
    log: { ...silentLogger, error: (error) => errors.push(error) },
    pages,
  })!
  try {
    await server.ready
    const url = `http://127.0.0.1:${server.bound!.port}`
    expect((await fetch(`${url}/configz`)).status).toBe(500)
    expect(errors).toEqual([new Error('broken')])
    // Megabytes, which are sent in parts.
    for (let i = 0; i < 16_384; i++) own.trafficBytes.with(`default/service-${i}`, 'sent').inc(i)
    const metrics = await fetch(`${url}/metrics`)
    expect(metrics.status).toBe(200)
    const page = await metrics.text()
    expect(page.length).toBe(Number(metrics.headers.get('content-length')))
    expect(page.match(/^kubeproxyts_traffic_bytes_total\{/gm)).toHaveLength(16_384)
    // One who goes in the middle of it.
    const gone = new AbortController()
    await fetch(`${url}/metrics`, { signal: gone.signal })
    gone.abort()
    const head = await fetch(`${url}/metrics`, { method: 'HEAD' })
    expect([head.status, await head.text()]).toEqual([200, ''])
    const put = await fetch(`${url}/debug/flags/v`, { method: 'PUT', body: '6' })
    expect(await put.text()).toBe('successfully set klog.logging.verbosity to 6\n')
    expect(verbosities).toEqual([6])
    const long = await fetch(`${url}/debug/flags/v`, { method: 'PUT', body: '1'.repeat(100_000) }).catch(
      () => undefined,
    )
    expect(long?.status ?? 413).toBe(413)
    expect((await fetch(`${url}/proxyMode`, { method: 'POST', body: 'x'.repeat(100_000) })).status).toBe(405)
    expect((await fetch(`${url}/proxyMode`)).status).toBe(200)
  } finally {
    await server.close()
  }
})
