// This program beside kube-proxy itself, one after the other, with the same flags, objects and API server.
//   GO_KUBE_PROXY=/path/to/kube-proxy npm run bench:beside -- [--mode nftables] [services ...]
//
// With KUBE_APISERVER=/path/to/kube-apiserver (and etcd in PATH) the API server is the real one; else it is that of the sandbox.
// Everything happens in a network namespace of its own. "Live" is what a client sees: connections to a cluster IP, one after
// the other, until one of them is answered by the endpoint that should answer.

import { parseArgs } from 'node:util'
import { setTimeout as sleep } from 'node:timers/promises'
import { execFileSync } from 'node:child_process'
import { unshareNetwork } from '../../src/system/netns.ts'
import { clusterOf } from '../support/api-server/sample-cluster.ts'
import { openApi, type BenchApi } from './beside-api.ts'
import { Contestant, shippedProgram } from './beside-contestant.ts'
import { awaitAnswer, serveAddresses } from './beside-traffic.ts'
import { median, table } from './figures.ts'
import { setLoopbackUp } from './netns.ts'
import type { ApiObject } from '../support/api-server/objects.ts'

const ENDPOINTS = 10
const CHANGES = 20
const CHURN = 400
const CHURN_EVERY_MS = 20

interface Figures {
  readonly startMs: number
  readonly changeMs: number
  readonly churnCpuMs: number
  readonly rssMb: number
}

interface Slice {
  readonly metadata: { readonly name: string }
  readonly endpoints: readonly { readonly addresses: readonly string[] }[]
}

const { values, positionals } = parseArgs({
  options: { mode: { type: 'string', default: 'nftables' } },
  allowPositionals: true,
})
const go = process.env['GO_KUBE_PROXY']
if (go === undefined) throw new Error('Cannot measure: GO_KUBE_PROXY must name a kube-proxy to compare with')
if (process.getuid?.() !== 0) throw new Error('Cannot measure: needs root, to make a network namespace')
const sizes = positionals.map(Number)
const programs = { 'kube-proxy-ts': shippedProgram, 'kube-proxy': go }

async function measure(program: string, api: BenchApi, objects: readonly ApiObject[]): Promise<Figures> {
  execFileSync('nft', ['flush', 'ruleset'])
  const services = objects.filter(({ kind }) => kind === 'Service') as unknown as { spec: { clusterIP: string } }[]
  const slices = objects.filter(({ kind }) => kind === 'EndpointSlice') as unknown as Slice[]
  await using proxy = new Contestant(program, values.mode, api.kubeconfig)
  const started = performance.now()
  const last = services.length - 1
  await awaitAnswer(services[last]!.spec.clusterIP, () => true, proxy)
  const startMs = performance.now() - started
  // It is known to answer, and has nothing to do.
  await sleep(3000)
  let round = 0
  /** Gives all endpoints of some service an address that none had before, and tells which. */
  const change = async () => {
    const n = (round * 7919) % slices.length
    const address = `11.${(round >> 8) & 255}.${round & 255}.${1 + (process.pid % 200)}`
    round++
    const endpoints = slices[n]!.endpoints.map((endpoint, i) =>
      i === 0 ? { ...endpoint, addresses: [address] } : undefined,
    )
    const next = { ...slices[n], endpoints: endpoints.filter((endpoint) => endpoint !== undefined) }
    await api.put(next as unknown as ApiObject)
    return { address, clusterIP: services[n]!.spec.clusterIP }
  }
  const changes: number[] = []
  for (let i = 0; i < CHANGES; i++) {
    const since = performance.now()
    const { address, clusterIP } = await change()
    await awaitAnswer(clusterIP, (from) => from === address, proxy)
    changes.push(performance.now() - since)
    // Not in step with any period.
    await sleep(500 + Math.random() * 1000)
  }
  const before = proxy.cpuMs()
  let latest = await change()
  for (let i = 1; i < CHURN; i++) {
    latest = await change()
    await sleep(CHURN_EVERY_MS)
  }
  await awaitAnswer(latest.clusterIP, (from) => from === latest.address, proxy)
  await sleep(2000)
  const figures = { startMs, changeMs: median(changes), churnCpuMs: proxy.cpuMs() - before, rssMb: proxy.rssMb() }
  // For the program that comes next, all is as it was.
  for (const slice of slices) await api.put(slice as unknown as ApiObject)
  return figures
}

unshareNetwork()
setLoopbackUp()
await using _ = await serveAddresses()
const rows: string[][] = []
for (const count of sizes.length > 0 ? sizes : [1000, 10_000]) {
  const objects = [...clusterOf({ services: count, endpointsPerService: ENDPOINTS })]
  await using api = await openApi(process.env['KUBE_APISERVER'])
  await api.load(objects)
  const results: Figures[] = []
  for (const [name, program] of Object.entries(programs)) {
    const figures = await measure(program, api, objects)
    results.push(figures)
    rows.push([String(count), name, ...cells(figures)])
    console.error(`${count} services, ${name}: ${cells(figures).join(', ')}`)
  }
  const [us, them] = results as [Figures, Figures]
  const ratio = (key: keyof Figures) => `${(them[key] / us[key]).toFixed(1)} x`
  rows.push([
    String(count),
    'kube-proxy / kube-proxy-ts',
    ratio('startMs'),
    ratio('changeMs'),
    ratio('churnCpuMs'),
    ratio('rssMb'),
  ])
}

function cells({ startMs, changeMs, churnCpuMs, rssMb }: Figures): string[] {
  return [
    `${(startMs / 1000).toFixed(2)} s`,
    `${changeMs.toFixed(changeMs < 10 ? 1 : 0)} ms`,
    `${(churnCpuMs / 1000).toFixed(2)} s`,
    `${rssMb.toFixed(0)} MB`,
  ]
}

console.log(
  table(['services', 'program', 'start to live', 'one change to live', `CPU of ${CHURN} changes`, 'RSS'], rows),
)
console.log(`
Mode ${values.mode}, ${ENDPOINTS} endpoints per service; ${execFileSync(go, ['--version'], { encoding: 'utf8' }).trim()} beside this program on Node ${process.version}, both with
their defaults (kube-proxy takes changes that come within a second together). From the start of the process, or the request that
changes an object, to the first connection that is answered rightly; one change: median of ${CHANGES}. CPU: of the process and the
programs that it ran, for one change every ${CHURN_EVERY_MS} ms.`)
process.exit(0)
