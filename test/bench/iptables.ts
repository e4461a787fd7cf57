// Start, change and CPU of the iptables mode with both backends, beside a bare iptables-restore of the same rules.
//   npm run bench:iptables -- [--starts 3] [--backends nft,legacy] [services ...]
//
// Runs the built program against an API server on loopback, in a network namespace of its own. All figures of one line
// come from one run; compare columns rather than runs.

import { execFileSync } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { TestApiServer } from '../support/api-server/api-server.ts'
import { benchNode, clusterOf } from '../support/api-server/sample-cluster.ts'
import { median, table } from './figures.ts'
import { MeasuredProxy } from './measured-proxy.ts'
import { cpuOf } from './process-cost.ts'
import { enterOwnNetwork } from './netns.ts'

const { values, positionals } = parseArgs({
  options: { starts: { type: 'string', default: '3' }, backends: { type: 'string', default: 'nft,legacy' } },
  allowPositionals: true,
})
const STARTS = Number(values.starts)
const ENDPOINTS = 10
const CHANGES = 20
const PAUSE_MS = 200
const REST = 5

type Backend = 'nft' | 'legacy'

interface Figures {
  readonly startMs: number
  readonly startCpuMs: number
  readonly bareStartMs: number
  readonly bareStartCpuMs: number
  readonly changeMs: number
  readonly bareChangeMs: number
  readonly cpuPerChangeMs: number
  readonly rssMb: number
}

/** A slice with another address for its first endpoint. */
function changed(slice: unknown, round: number): unknown {
  const copy = structuredClone(slice) as { endpoints: { addresses: string[] }[] }
  copy.endpoints[0]!.addresses[0] = `11.${(round >> 8) & 255}.${round & 255}.1`
  return copy
}

async function measure(backend: Backend, services: number): Promise<Figures> {
  await using server = await TestApiServer.start()
  const objects = [...clusterOf({ services, endpointsPerService: ENDPOINTS })]
  server.store.applyAll(objects)
  server.store.applyAll([benchNode()])
  const slices = objects.filter((object) => object.kind === 'EndpointSlice')
  const starts: number[] = []
  for (let i = 1; i < STARTS; i++) {
    await using proxy = await startFromNothing(backend, server)
    starts.push(await proxy.live())
  }
  const proxy = await startFromNothing(backend, server)
  starts.push(await proxy.live())
  const startCpuMs = proxy.cpuMs() + proxy.programsCpuMs()
  let round = 0
  const change = () => server.store.apply(changed(slices[(round * 7919) % slices.length], round++) as never)
  const changes: number[] = []
  for (let i = 0; i < CHANGES; i++) {
    changes.push(await proxy.oneChange(change, PAUSE_MS))
    // Changes get a quarter of the time: the next one is not to wait for that.
    await sleep(REST * changes.at(-1)!)
  }
  // Asking for the time costs CPU, too, so the two are measured one after the other.
  const before = proxy.cpuMs()
  for (let i = 0; i < CHANGES; i++) {
    change()
    await sleep(REST * Math.max(...changes))
  }
  const cpuPerChangeMs = (proxy.cpuMs() - before) / CHANGES
  const rssMb = proxy.rssMb()
  // It would mend what we do now.
  await proxy[Symbol.asyncDispose]()
  const thereAndBack = smallestChanges(backend)
  const bareChanges: number[] = []
  for (let i = 0; i < CHANGES; i++) {
    // Both come to a machine that had nothing to do.
    await sleep(PAUSE_MS)
    bareChanges.push(restoreMs(backend, thereAndBack[i % 2]!))
  }
  const saved = iptables(backend, '-save', [])
  flush()
  const bareStarts: number[] = []
  let bareStartCpuMs = 0
  for (let i = 0; i < STARTS; i++) {
    flush()
    const beforeMs = cpuOf('self').childrenMs
    bareStarts.push(restoreMs(backend, saved))
    bareStartCpuMs = cpuOf('self').childrenMs - beforeMs
  }
  return {
    startMs: median(starts),
    startCpuMs,
    bareStartMs: median(bareStarts),
    bareStartCpuMs,
    changeMs: median(changes),
    bareChangeMs: median(bareChanges),
    cpuPerChangeMs,
    rssMb,
  }
}

function startFromNothing(backend: Backend, { url }: TestApiServer): Promise<MeasuredProxy> {
  flush()
  // What makes the program choose the backend.
  iptables(backend, '', ['-t', 'mangle', '-N', 'KUBE-IPTABLES-HINT'])
  return MeasuredProxy.start(url, {
    mode: 'iptables',
    flags: ['--iptables-min-sync-period=0s', '--iptables-sync-period=1h'],
  })
}

/** Another endpoint for a service of ten: its chain, and a chain for the endpoint. And the old one again. */
function smallestChanges(backend: Backend): [string, string] {
  const nat = iptables(backend, '-save', ['-t', 'nat'])
  const chain = /^:(KUBE-SVC-\w+)/m.exec(nat)![1]!
  const rules = nat.match(new RegExp(`^-A ${chain} .*$`, 'gm'))!
  const old = /KUBE-SEP-\w+/.exec(rules.at(-1)!)![0]
  const endpoint = nat.match(new RegExp(`^-A ${old} .*$`, 'gm'))!
  const fresh = `${old.slice(0, -1)}${old.endsWith('0') ? '1' : '0'}`
  const change = (from: string, to: string) =>
    [
      '*nat',
      `:${chain} - [0:0]`,
      `:${from} - [0:0]`,
      `:${to} - [0:0]`,
      ...[...rules, ...endpoint].map((line) => line.replaceAll(old, to)),
      `-X ${from}`,
      'COMMIT',
      '',
    ].join('\n')
  return [change(old, fresh), change(fresh, old)]
}

function restoreMs(backend: Backend, text: string): number {
  const args = text.startsWith('*nat\n:KUBE') ? ['--noflush'] : []
  const start = performance.now()
  iptables(backend, '-restore', args, text)
  return performance.now() - start
}

function iptables(backend: Backend, suffix: string, args: readonly string[], input = ''): string {
  return execFileSync(`iptables-${backend}${suffix}`, args, {
    input,
    encoding: 'utf8',
    maxBuffer: 1 << 30,
    stdio: ['pipe', 'pipe', 'ignore'],
  })
}

function flush(): void {
  for (const backend of ['nft', 'legacy'] as const) {
    for (const table of ['nat', 'filter', 'mangle']) {
      for (const family of ['iptables', 'ip6tables']) {
        execFileSync(`${family}-${backend}`, ['-t', table, '-F'])
        execFileSync(`${family}-${backend}`, ['-t', table, '-X'])
      }
    }
  }
}

enterOwnNetwork()

const rows: string[][] = []
for (const services of positionals.length > 0 ? positionals.map(Number) : [1000]) {
  for (const backend of values.backends.split(',') as Backend[]) {
    const figures = await measure(backend, services)
    const { startMs, bareStartMs, changeMs, bareChangeMs, cpuPerChangeMs, rssMb } = figures
    rows.push([
      backend,
      String(services),
      `${(startMs / 1000).toFixed(2)} s`,
      `${(bareStartMs / 1000).toFixed(2)} s`,
      `${(figures.startCpuMs / 1000).toFixed(2)} s`,
      `${(figures.bareStartCpuMs / 1000).toFixed(2)} s`,
      `${changeMs.toFixed(1)} ms`,
      `${bareChangeMs.toFixed(1)} ms`,
      `${cpuPerChangeMs.toFixed(1)} ms`,
      `${rssMb.toFixed(0)} MB`,
    ])
    console.error(`measured ${services} services with iptables-${backend}`)
  }
}
console.log(
  table(
    [
      'iptables',
      'services',
      'start to live',
      'bare restore',
      'CPU of the start',
      'of the bare restore',
      'one change',
      'bare change',
      'own CPU per change',
      'RSS',
    ],
    rows,
  ),
)
console.log(`
${ENDPOINTS} endpoints per service. "start to live": median of ${STARTS}, from exec to the end of the first sync, listing from
the API server included, its CPU with that of the programs that it ran; "bare restore": iptables-restore of what iptables-save then prints. "one change": median of
${CHANGES}, from the event received to the end of iptables-restore; "bare change": iptables-restore of a text with nothing
but the change.`)
process.exit(0)
