// Start, change, CPU, memory and bytes of the nftables mode, beside the shape of one chain per service through `nft -f`.
//   npm run bench -- [--endpoints 10] [--mode nftables] [services ...]
//
// The userspace mode has no such peer here: see bench:userspace for what it carries. iptables and ipvs have benchmarks of their own.
//
// Runs the built program against an API server on loopback, in a network namespace of its own. All figures of one line
// come from one run; compare columns rather than runs.

import { execFileSync } from 'node:child_process'
import { parseArgs } from 'node:util'
import { TestApiServer } from '../support/api-server/api-server.ts'
import { benchNode, clusterOf } from '../support/api-server/sample-cluster.ts'
import { measurePeer, type PeerFigures } from './chain-per-service.ts'
import { median, table } from './figures.ts'
import { MeasuredProxy } from './measured-proxy.ts'
import { enterOwnNetwork, flushRules } from './netns.ts'

const { values, positionals } = parseArgs({
  options: { endpoints: { type: 'string', default: '10' }, mode: { type: 'string', default: 'nftables' } },
  allowPositionals: true,
})
const ENDPOINTS = Number(values.endpoints)
const CHANGES = 100
const CHURN = 500
const CHURN_MS = 5000
/** Beyond this the peer takes minutes. */
const PEER_LIMIT = values.mode === 'nftables' ? 10_000 : 0

interface Figures {
  readonly startMs: number
  readonly startCpuMs: number
  readonly bytes: number
  readonly changeMs: number
  readonly churnCpuMs: number
  readonly rssMb: number
}

async function measure(services: number): Promise<Figures> {
  flushRules()
  await using server = await TestApiServer.start()
  server.store.applyAll(clusterOf({ services, endpointsPerService: ENDPOINTS }))
  server.store.applyAll([benchNode()])
  const slices = [...clusterOf({ services, endpointsPerService: ENDPOINTS })].filter(
    (object) => object.kind === 'EndpointSlice',
  )
  await using proxy = await MeasuredProxy.start(server.url, { mode: values.mode })
  const startMs = await proxy.live()
  const startCpuMs = proxy.cpuMs()
  const bytes = await proxy.metric('kubeproxyts_netlink_sent_bytes_total{ip_family="IPv4"}')
  let round = 0
  const change = () => {
    const slice = structuredClone(slices[(round * 7919) % slices.length]!) as { endpoints?: { addresses: string[] }[] }
    slice.endpoints![0]!.addresses[0] = `11.${(round >> 8) & 255}.${round & 255}.1`
    round++
    server.store.apply(slice as never)
  }
  const changes: number[] = []
  for (let i = 0; i < CHANGES; i++) changes.push(await proxy.oneChange(change))
  const before = proxy.cpuMs()
  for (let i = 0; i < CHURN; i++) {
    change()
    await new Promise((resolve) => setTimeout(resolve, CHURN_MS / CHURN - 1))
  }
  return {
    startMs,
    startCpuMs,
    bytes,
    changeMs: median(changes),
    churnCpuMs: proxy.cpuMs() - before,
    rssMb: proxy.rssMb(),
  }
}

enterOwnNetwork()

const sizes = positionals.map(Number)
const rows: string[][] = []
for (const services of sizes.length > 0 ? sizes : [100, 1000, 10_000, 50_000]) {
  const ours = await measure(services)
  const peer: PeerFigures | undefined = services <= PEER_LIMIT ? measurePeer(services, ENDPOINTS) : undefined
  rows.push([
    String(services),
    `${(ours.startMs / 1000).toFixed(2)} s`,
    peer === undefined ? 'not tried' : `${(peer.loadMs / 1000).toFixed(2)} s`,
    `${ours.changeMs.toFixed(2)} ms`,
    peer === undefined ? 'not tried' : `${peer.changeMs.toFixed(1)} ms`,
    `${(ours.startCpuMs / 1000).toFixed(2)} s`,
    `${(ours.churnCpuMs / 1000).toFixed(2)} s`,
    `${ours.rssMb.toFixed(0)} MB`,
    `${(ours.bytes / 1e6).toFixed(1)} MB`,
  ])
  console.error(`measured ${services} services`)
}
console.log(
  table(
    [
      'services',
      'start to live',
      'nft -f, chain per service',
      'one change',
      'nft -f, one change',
      'CPU of the start',
      `CPU of ${CHURN} changes in ${CHURN_MS / 1000} s`,
      'RSS',
      'sent at start',
    ],
    rows,
  ),
)
console.log(`
${ENDPOINTS} endpoints per service. "start to live": from exec to the kernel's acknowledgement, listing from the API
server included; the peer's figure is the bare load, without listing. "one change": median of ${CHANGES}, from the event
received to the kernel's acknowledgement; the peer replaces one service's chain.
`)
if (values.mode === 'nftables') {
  execFileSync(process.execPath, [new URL('connect-retry.js', import.meta.url).pathname], { stdio: 'inherit' })
}
process.exit(0)
