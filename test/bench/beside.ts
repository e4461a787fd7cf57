// This program beside kube-proxy itself, in turns: A B A B, with the same flags, objects and API server; medians.
//   GO_KUBE_PROXY=/path/to/kube-proxy npm run bench:beside -- [--rounds 10] [--mode nftables] [--write] [services ...]
//
// With KUBE_APISERVER=/path/to/kube-apiserver (and ETCD=/path/to/etcd, or etcd in PATH) the API server is the real one; else it is
// that of the sandbox. With --write the table replaces the one in README.md and docs/performance.md, so that they say the same.
// Everything happens in a network namespace of its own. "Live" is what a client sees: connections to a cluster IP, one after
// the other, until one of them is answered by the endpoint that should answer.

import { parseArgs } from 'node:util'
import { loadavg } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { execFileSync } from 'node:child_process'
import { unshareNetwork } from '../../src/system/netns.ts'
import { clusterOf } from '../support/api-server/sample-cluster.ts'
import { openApi, type BenchApi } from './beside-api.ts'
import { Contestant, shippedProgram } from './beside-contestant.ts'
import { formatBeside, writeBeside, type Figures, type Measured } from './beside-report.ts'
import { awaitAnswer, serveAddresses } from './beside-traffic.ts'
import { median } from './figures.ts'
import { setLoopbackUp } from './netns.ts'
import type { ApiObject } from '../support/api-server/objects.ts'

const ENDPOINTS = 10
const CHANGES = 5
const CHURN = 400
const CHURN_EVERY_MS = 20

interface Slice {
  readonly metadata: { readonly name: string }
  readonly endpoints: readonly { readonly addresses: readonly string[] }[]
}

const { values, positionals } = parseArgs({
  options: {
    mode: { type: 'string', default: 'nftables' },
    rounds: { type: 'string', default: '10' },
    write: { type: 'boolean', default: false },
  },
  allowPositionals: true,
})
const go = process.env['GO_KUBE_PROXY']
if (go === undefined) throw new Error('Cannot measure: GO_KUBE_PROXY must name a kube-proxy to compare with')
if (process.getuid?.() !== 0) throw new Error('Cannot measure: needs root, to make a network namespace')
const rounds = Number(values.rounds)
const sizes = positionals.length > 0 ? positionals.map(Number) : [1000, 10_000]
const checkout = new URL('../../../../', import.meta.url).pathname

async function measure(program: string, api: BenchApi, objects: readonly ApiObject[]): Promise<Figures> {
  execFileSync('nft', ['flush', 'ruleset'])
  const services = objects.filter(({ kind }) => kind === 'Service') as unknown as { spec: { clusterIP: string } }[]
  const slices = objects.filter(({ kind }) => kind === 'EndpointSlice') as unknown as Slice[]
  await using proxy = new Contestant(program, values.mode, api.kubeconfig)
  const started = performance.now()
  await awaitAnswer(services.at(-1)!.spec.clusterIP, () => true, proxy)
  const startMs = performance.now() - started
  await sleep(1000)
  const startCpu = proxy.cpu()
  // It is known to answer, and has nothing to do.
  await sleep(3000)
  const changed = new Set<Slice>()
  let next = 0
  /** Gives all endpoints of some service an address that none had before, and tells which. */
  const change = async () => {
    const n = (next * 7919) % slices.length
    const address = `11.${(next >> 8) & 255}.${next & 255}.${1 + (process.pid % 200)}`
    next++
    const slice = slices[n]!
    changed.add(slice)
    const changedTo: object = { ...slice, endpoints: [{ ...slice.endpoints[0], addresses: [address] }] }
    await api.put(changedTo as ApiObject)
    return { address, clusterIP: services[n]!.spec.clusterIP }
  }
  const changes: number[] = []
  for (let i = 0; i < CHANGES; i++) {
    const since = performance.now()
    const { address, clusterIP } = await change()
    await awaitAnswer(clusterIP, (from) => from === address, proxy)
    changes.push(performance.now() - since)
    // Not in step with any period.
    await sleep(1000 + Math.random() * 1000)
  }
  const before = proxy.cpu()
  let latest = await change()
  for (let i = 1; i < CHURN; i++) {
    latest = await change()
    await sleep(CHURN_EVERY_MS)
  }
  await awaitAnswer(latest.clusterIP, (from) => from === latest.address, proxy)
  await sleep(2000)
  const after = proxy.cpu()
  const churnOwnCpuMs = after.ownMs - before.ownMs
  const figures = {
    startMs,
    startCpuMs: startCpu.ownMs + startCpu.childrenMs,
    startOwnCpuMs: startCpu.ownMs,
    changeMs: median(changes),
    churnCpuMs: churnOwnCpuMs + after.childrenMs - before.childrenMs,
    churnOwnCpuMs,
    rssMb: proxy.rssMb(),
  }
  // For the program that comes next, all is as it was.
  for (const slice of changed) await api.put(slice as unknown as ApiObject)
  return figures
}

async function measureSize(services: number): Promise<Measured> {
  const objects = [...clusterOf({ services, endpointsPerService: ENDPOINTS })]
  await using api = await openApi(process.env['KUBE_APISERVER'])
  await api.load(objects)
  const measured = { services, ours: [] as Figures[], theirs: [] as Figures[] }
  for (let round = 1; round <= rounds; round++) {
    for (const [who, program] of [
      ['ours', shippedProgram],
      ['theirs', go!],
    ] as const) {
      const figures = await measure(program, api, objects)
      measured[who].push(figures)
      const cells = Object.entries(figures).map(([key, value]) => `${key} ${value.toFixed(1)}`)
      console.error(`${services} services, round ${round}, ${who}: ${cells.join(', ')}`)
    }
  }
  return measured
}

const git = (...args: string[]) => execFileSync('git', ['-C', checkout, ...args], { encoding: 'utf8' }).trim()
// As it is now: a run takes a while.
const commit =
  git('rev-parse', '--short=7', 'HEAD') +
  (git('status', '--porcelain', '--', 'src', 'packages') === '' ? '' : ' with changes')
const [loadBefore = 0] = loadavg()
unshareNetwork()
setLoopbackUp()
await using _ = await serveAddresses()
const measured: Measured[] = []
for (const services of sizes) measured.push(await measureSize(services))
const version = /v\d+\.\d+\S*/.exec(execFileSync(go, ['--version'], { encoding: 'utf8' }))?.[0]
const text = formatBeside(measured, {
  date: new Date().toISOString().slice(0, 10),
  commit,
  peer: `kube-proxy ${version}`,
  node: process.version.slice(1),
  mode: values.mode,
  api: process.env['KUBE_APISERVER'] === undefined ? "the sandbox's API server" : 'a real API server with its etcd',
  endpoints: ENDPOINTS,
  rounds,
  changes: CHANGES,
  churn: CHURN,
  churnEveryMs: CHURN_EVERY_MS,
  load: `${loadBefore.toFixed(0)} before and ${loadavg()[0]!.toFixed(0)} after`,
})
console.log(text)
if (values.write) writeBeside([`${checkout}README.md`, `${checkout}docs/performance.md`], text)
process.exit(0)
