// A thousand changes at once, as when a node goes down: how long until the kernel has them, and does the proxy answer meanwhile?
//   npm run bench:burst -- [services ...]
//
// Runs the built program against an API server on loopback, in a network namespace of its own.

import { TestApiServer } from '../support/api-server/api-server.ts'
import { benchNode, clusterOf } from '../support/api-server/sample-cluster.ts'
import { median, table } from './figures.ts'
import { HealthProber } from './health-prober.ts'
import { MeasuredProxy } from './measured-proxy.ts'
import { enterOwnNetwork, flushRules } from './netns.ts'

const ENDPOINTS = 10
const CHANGES = 1000
const ROUNDS = 5
const QUIET_MS = 1000
const LAST_SYNC = 'kubeproxy_sync_proxy_rules_last_timestamp_seconds{ip_family="IPv4"}'
const SYNCS = 'kubeproxy_sync_proxy_rules_duration_seconds_count{ip_family="IPv4"}'

const limits = { kernelMs: 50, healthMs: 100 }

const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

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
  const prober = new HealthProber()
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

enterOwnNetwork()
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
