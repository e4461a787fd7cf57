// A thousand changes at once, as when a node goes down: how long until the kernel has them, and does the proxy answer meanwhile?
//   npm run bench:burst -- [services ...]
//
// Runs the built program against an API server on loopback, in a network namespace of its own. Health is asked for by a process
// of its own, so that a wait is the proxy's and not that of the server of this benchmark.

import { fork } from 'node:child_process'
import http from 'node:http'
import { unshareNetwork } from '../../src/system/netns.ts'
import { TestApiServer } from '../support/api-server/api-server.ts'
import { benchNode, clusterOf } from '../support/api-server/sample-cluster.ts'
import { median, table } from './figures.ts'
import { MeasuredProxy } from './measured-proxy.ts'
import { flushRules, setLoopbackUp } from './netns.ts'

const ENDPOINTS = 10
const CHANGES = 1000
const ROUNDS = 5
const HEALTH_PORT = 10256
const QUIET_MS = 1000
const LAST_SYNC = 'kubeproxy_sync_proxy_rules_last_timestamp_seconds{ip_family="IPv4"}'
const SYNCS = 'kubeproxy_sync_proxy_rules_duration_seconds_count{ip_family="IPv4"}'

const limits = { kernelMs: 50, healthMs: 100 }

const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

/** How long each answer of /healthz took since the last message from the parent. */
async function probe(): Promise<void> {
  let times: number[] = []
  process.on('message', () => {
    process.send!(times)
    times = []
  })
  for (;;) {
    const startMs = performance.now()
    await new Promise<void>((resolve) => {
      const request = http.get({ host: '127.0.0.1', port: HEALTH_PORT, path: '/healthz', agent: false }, (response) => {
        response.resume()
        response.on('close', resolve)
      })
      request.on('error', () => resolve())
    })
    times.push(performance.now() - startMs)
    await sleep(5)
  }
}

class Prober {
  readonly #child = fork(new URL(import.meta.url), ['probe'])

  take(): Promise<number[]> {
    const answer = new Promise<number[]>((resolve) =>
      this.#child.once('message', (times) => resolve(times as number[])),
    )
    this.#child.send('take')
    return answer
  }

  stop(): void {
    this.#child.kill()
  }
}

interface Figures {
  readonly arrivalMs: number
  readonly kernelMs: number
  readonly syncs: number
  readonly healthMs: number
  readonly idleHealthMs: number
}

async function measure(services: number): Promise<Figures[]> {
  flushRules()
  await using server = await TestApiServer.start()
  const objects = [...clusterOf({ services, endpointsPerService: ENDPOINTS })]
  server.store.applyAll(objects)
  server.store.applyAll([benchNode()])
  const slices = objects.filter((object) => object.kind === 'EndpointSlice') as {
    endpoints?: { addresses: string[] }[]
  }[]
  await using proxy = await MeasuredProxy.start(server.url)
  await proxy.live()
  await sleep(3000)
  const prober = new Prober()
  await sleep(500)
  const figures: Figures[] = []
  for (let round = 0; round < ROUNDS; round++) {
    await prober.take()
    await sleep(500)
    const idle = await prober.take()
    const before = await proxy.metric(SYNCS)
    const startMs = Date.now()
    for (let i = 0; i < CHANGES; i++) {
      const slice = structuredClone(slices[(i * 7919) % slices.length]!)
      slice.endpoints![i % ENDPOINTS]!.addresses[0] = `11.${round}.${(i >> 8) & 255}.${i & 255}`
      server.store.apply(slice as never)
      // The server writes in between, as it would.
      if (i % 50 === 49) await new Promise((resolve) => setImmediate(resolve))
    }
    const lastMs = Date.now()
    await sleep(QUIET_MS)
    const burst = await prober.take()
    figures.push({
      arrivalMs: lastMs - startMs,
      kernelMs: (await proxy.metric(LAST_SYNC)) * 1000 - lastMs,
      syncs: (await proxy.metric(SYNCS)) - before,
      healthMs: Math.max(...burst),
      idleHealthMs: Math.max(...idle),
    })
  }
  prober.stop()
  return figures
}

if (process.argv[2] === 'probe') {
  await probe()
} else {
  if (process.getuid?.() !== 0) throw new Error('Cannot measure: needs root, to make a network namespace')
  unshareNetwork()
  setLoopbackUp()
  const sizes = process.argv.slice(2).map(Number)
  const rows: string[][] = []
  for (const services of sizes.length > 0 ? sizes : [1000, 10_000]) {
    const figures = await measure(services)
    const both = (of: (each: Figures) => number) =>
      `${median(figures.map(of)).toFixed(0)} / ${Math.max(...figures.map(of)).toFixed(0)}`
    rows.push([
      String(services),
      both(({ arrivalMs }) => arrivalMs),
      both(({ kernelMs }) => kernelMs),
      both(({ syncs }) => syncs),
      both(({ healthMs }) => healthMs),
      both(({ idleHealthMs }) => idleHealthMs),
    ])
  }
  console.log(
    table(
      [
        'services',
        `the server sends ${CHANGES} events in (ms)`,
        `last event to the kernel (ms, wanted ${limits.kernelMs})`,
        'syncs',
        `slowest /healthz (ms, wanted ${limits.healthMs})`,
        'slowest /healthz at rest (ms)',
      ],
      rows,
    ),
  )
  console.log(`
${ENDPOINTS} endpoints per service, median / worst of ${ROUNDS} bursts.`)
  process.exit(0)
}
