// A restart finds its rules in the kernel and compares all of them; the same happens when another program has changed one, and once an
// hour. How long does that take beside a start from nothing, and does the proxy answer meanwhile?
//   npm run bench:restart -- [services ...]
//
// Runs the built program against an API server on loopback, in a network namespace of its own.

import { execFileSync } from 'node:child_process'
import { TestApiServer } from '../support/api-server/api-server.ts'
import { benchNode, clusterOf } from '../support/api-server/sample-cluster.ts'
import { table } from './figures.ts'
import { HealthProber } from './health-prober.ts'
import { MeasuredProxy } from './measured-proxy.ts'
import { enterOwnNetwork, flushRules } from './netns.ts'

const ENDPOINTS = 10
/** One service of so many changes while no proxy runs. */
const CHANGED = 100
const FULL_SYNC = 'kubeproxy_sync_full_proxy_rules_duration_seconds'

const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

interface StartFigures {
  readonly liveMs: number
  readonly cpuMs: number
  readonly peakMb: number
}

async function measureStart(url: string): Promise<StartFigures> {
  await using proxy = await MeasuredProxy.start(url)
  const liveMs = await proxy.live()
  return { liveMs, cpuMs: proxy.cpuMs(), peakMb: proxy.peakMb() }
}

interface ComparisonFigures {
  readonly tookMs: number
  readonly healthMs: number
  readonly changeMs: number
}

/** Another program puts an address where it does not belong; a change of the cluster comes meanwhile. */
async function measureComparison(url: string, change: () => void): Promise<ComparisonFigures> {
  await using proxy = await MeasuredProxy.start(url)
  await proxy.live()
  await sleep(3000)
  const prober = new HealthProber()
  await sleep(500)
  await prober.take()
  const sumBefore = await proxy.metric(`${FULL_SYNC}_sum{ip_family="IPv4"}`)
  const countBefore = await proxy.metric(`${FULL_SYNC}_count{ip_family="IPv4"}`)
  execFileSync('nft', ['add', 'element', 'ip', 'kube-proxy', 'cluster-ips', '{ 198.51.100.1 }'])
  await sleep(50)
  const changeMs = await proxy.oneChange(change, 50)
  while ((await proxy.metric(`${FULL_SYNC}_count{ip_family="IPv4"}`)) === countBefore) await sleep(100)
  const tookMs = ((await proxy.metric(`${FULL_SYNC}_sum{ip_family="IPv4"}`)) - sumBefore) * 1000
  const times = await prober.take()
  prober.stop()
  return { tookMs, healthMs: Math.max(...times), changeMs }
}

interface Figures {
  readonly fresh: StartFigures
  readonly same: StartFigures
  readonly changed: StartFigures
  readonly comparison: ComparisonFigures
}

async function measure(services: number): Promise<Figures> {
  flushRules()
  await using server = await TestApiServer.start()
  const objects = [...clusterOf({ services, endpointsPerService: ENDPOINTS })]
  server.store.applyAll(objects)
  server.store.applyAll([benchNode()])
  const fresh = await measureStart(server.url)
  const same = await measureStart(server.url)
  const slices = objects.filter((object) => object.kind === 'EndpointSlice') as {
    endpoints?: { addresses: string[] }[]
  }[]
  const change = (i: number) => {
    const slice = structuredClone(slices[i]!)
    slice.endpoints![0]!.addresses[0] = `11.0.${(i >> 8) & 255}.${i & 255}`
    server.store.apply(slice as never)
  }
  for (let i = 0; i < slices.length; i += CHANGED) change(i)
  const changed = await measureStart(server.url)
  const comparison = await measureComparison(server.url, () => change(1))
  return { fresh, same, changed, comparison }
}

enterOwnNetwork()
const sizes = process.argv.slice(2).map(Number)
const rows: string[][] = []
for (const services of sizes.length > 0 ? sizes : [1000, 10_000]) {
  const { fresh, same, changed, comparison } = await measure(services)
  const seconds = (ms: number) => `${(ms / 1000).toFixed(2)} s`
  const start = ({ liveMs, cpuMs, peakMb }: StartFigures) =>
    `${seconds(liveMs)}, ${seconds(cpuMs)}, ${peakMb.toFixed(0)} MB`
  rows.push([
    String(services),
    start(fresh),
    start(same),
    start(changed),
    seconds(comparison.tookMs),
    `${comparison.healthMs.toFixed(0)} ms`,
    seconds(comparison.changeMs),
  ])
  console.error(`measured ${services} services`)
}
console.log(
  table(
    [
      'services',
      'first start',
      'restart',
      `restart, 1 of ${CHANGED} services changed`,
      'comparison while it runs',
      'slowest /healthz in it (wanted: 100 ms)',
      'a change in it',
    ],
    rows,
  ),
)
console.log(`
${ENDPOINTS} endpoints per service. Starts: from exec to live, CPU, most memory.`)
process.exit(0)
