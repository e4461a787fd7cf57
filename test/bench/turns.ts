// What a start, changes and rest cost, for several programs in turns: A B A B, so that a busy machine disturbs all of them alike.
//   npm run bench:turns -- [--rounds 5] [--services 1000] [--endpoints 10] [--changes 0] [--rest 5] [NAME=COMMAND ...]
//
// The figures are the kernel's about the process: CPU, memory, wakeups. With --changes, so many are made, one in 10 ms, and
// then the program is left alone for --rest seconds. A COMMAND is a program with arguments; this program as it is shipped, on the Node in
// PATH, when none is given. With KUBE_APISERVER=/path/to/kube-apiserver (and ETCD=/path/to/etcd, or etcd in PATH) the API server is the real one; else
// it is that of the sandbox.

import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, openSync, readFileSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { setTimeout as sleep } from 'node:timers/promises'
import { clusterOf } from '../support/api-server/sample-cluster.ts'
import { openApi, type BenchApi } from './beside-api.ts'
import { benchEnvironment, benchFlags, shippedProgram } from './beside-contestant.ts'
import { median, table } from './figures.ts'
import { enterOwnNetwork, flushRules } from './netns.ts'
import type { ApiObject } from '../support/api-server/objects.ts'

const { values, positionals } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    services: { type: 'string', default: '1000' },
    endpoints: { type: 'string', default: '10' },
    changes: { type: 'string', default: '0' },
    mode: { type: 'string', default: 'nftables' },
    rest: { type: 'string', default: '5' },
    log: { type: 'boolean', default: false },
  },
  allowPositionals: true,
})
const ways = (positionals.length > 0 ? positionals : [`kube-proxy-ts=${shippedProgram}`]).map((each) => {
  const at = each.indexOf('=')
  return { name: each.slice(0, at), command: each.slice(at + 1).split(' ') }
})

/** Milliseconds and megabytes. */
const columns = {
  live: 'start to live, ms',
  startCpu: 'CPU of the start, ms',
  startMain: 'of it of the main thread, ms',
  startSystem: 'of it in the kernel, ms',
  peak: 'highest after the start, MB',
  changesCpu: 'CPU of the changes, ms',
  busy: 'after the changes, MB',
  busyFile: 'of it pages of files, MB',
  idleCpu: `CPU of ${values.rest} s of rest, ms`,
  wakeups: `wakeups in ${values.rest} s of rest`,
  rest: 'at rest, MB',
} as const
type Figures = Partial<Record<keyof typeof columns, number>>

const REST_MS = Number(values.rest) * 1000
const CHANGE_EVERY_MS = 10
const CLOCK_TICKS = 100

class Process {
  readonly #child: ChildProcess
  readonly #folder = mkdtempSync(join(tmpdir(), 'bench-turns-'))
  readonly startMs = Date.now()

  constructor(command: readonly string[], kubeconfig: string) {
    const log = openSync(join(this.#folder, 'log'), 'w')
    const words = ['--pdeathsig', 'KILL', '--', ...command, ...benchFlags(values.mode, kubeconfig)]
    this.#child = spawn('setpriv', words, { stdio: ['ignore', log, log], env: benchEnvironment })
  }

  get log(): string {
    return readFileSync(join(this.#folder, 'log'), 'utf8')
  }

  /** Milliseconds until the first complete set of rules was in the kernel. */
  async live(): Promise<number> {
    for (;;) {
      await sleep(50)
      if (this.#child.exitCode !== null) throw new Error(`Cannot measure: the program ended: ${this.log}`)
      const liveMs = (await lastSync()) * 1000 - this.startMs
      if (liveMs > 0) return liveMs
    }
  }

  /** Since its start, of threads that have ended as well, in steps of 10 ms. */
  cpuMs(): { all: number; system: number } {
    const fields = this.#file('stat').split(') ').at(-1)!.split(' ')
    const ms = (n: number) => (Number(fields[n]) / CLOCK_TICKS) * 1000
    return { all: ms(11) + ms(12), system: ms(12) }
  }

  mainCpuMs(): number {
    return Number(this.#file(`task/${this.#child.pid}/schedstat`).split(' ')[0]) / 1e6
  }

  /** Of the threads that there are, exactly. */
  threads(): { cpuMs: number; wakeups: number } {
    let [cpuMs, wakeups] = [0, 0]
    for (const id of readdirSync(`/proc/${this.#child.pid}/task`)) {
      cpuMs += Number(this.#file(`task/${id}/schedstat`).split(' ')[0]) / 1e6
      wakeups += Number(/^voluntary_ctxt_switches:\s+(\d+)/m.exec(this.#file(`task/${id}/status`))![1])
    }
    return { cpuMs, wakeups }
  }

  memoryMb(key: 'VmHWM' | 'VmRSS' | 'RssFile'): number {
    return Number(new RegExp(`${key}:\\s+(\\d+)`).exec(this.#file('status'))![1]) / 1024
  }

  async stop(): Promise<void> {
    const ended = once(this.#child, 'exit')
    this.#child.kill('SIGTERM')
    await ended
    if (values.log) console.error(this.log)
    rmSync(this.#folder, { recursive: true })
  }

  #file(name: string): string {
    return readFileSync(`/proc/${this.#child.pid}/${name}`, 'utf8')
  }
}

/** In seconds since the epoch; 0 before there was one. */
async function lastSync(): Promise<number> {
  const response = await fetch('http://127.0.0.1:10249/metrics').catch(() => undefined)
  const text = (await response?.text()) ?? ''
  const key = /^kubeproxy_sync_proxy_rules_last_timestamp_seconds(?:\{ip_family="IPv4"\})? (.*)$/m
  return Number(key.exec(text)?.[1] ?? 0)
}

async function measure(command: readonly string[], api: BenchApi, slices: readonly ApiObject[]): Promise<Figures> {
  flushRules()
  const program = new Process(command, api.kubeconfig)
  const live = await program.live()
  const { all: startCpu, system: startSystem } = program.cpuMs()
  const startMain = program.mainCpuMs()
  await sleep(1000)
  const start: Figures = { live, startCpu, startMain, startSystem, peak: program.memoryMb('VmHWM') }
  if (Number(values.changes) === 0) {
    await program.stop()
    return start
  }
  await sleep(3000)
  const before = program.threads()
  for (let i = 0; i < Number(values.changes); i++) {
    const slice = structuredClone(slices[(i * 7919) % slices.length]!) as { endpoints?: { addresses: string[] }[] }
    slice.endpoints![0]!.addresses[0] = `11.${(i >> 8) & 255}.${i & 255}.${(program.startMs % 250) + 1}`
    await api.put(slice as never)
    await sleep(CHANGE_EVERY_MS - 1)
  }
  await sleep(100)
  const after = program.threads()
  const busy = { busy: program.memoryMb('VmRSS'), busyFile: program.memoryMb('RssFile') }
  await sleep(2500)
  const quiet = program.threads()
  await sleep(REST_MS)
  const end = program.threads()
  const rest = program.memoryMb('VmRSS')
  await program.stop()
  return {
    ...start,
    changesCpu: after.cpuMs - before.cpuMs,
    ...busy,
    idleCpu: end.cpuMs - quiet.cpuMs,
    wakeups: end.wakeups - quiet.wakeups,
    rest,
  }
}

enterOwnNetwork()
await using api = await openApi(process.env['KUBE_APISERVER'])
const cluster = [...clusterOf({ services: Number(values.services), endpointsPerService: Number(values.endpoints) })]
await api.load(cluster)
const slices = cluster.filter(({ kind }) => kind === 'EndpointSlice')
const figures = ways.map((): Figures[] => [])
for (let round = -1; round < Number(values.rounds); round++) {
  for (const [i, { command, name }] of ways.entries()) {
    // The first fills caches.
    const figure = await measure(command, api, slices)
    if (round >= 0) figures[i]!.push(figure)
    const cells = Object.entries(figure).map(([key, value]) => `${key} ${value.toFixed(1)}`)
    console.error(`${name}: ${cells.join(', ')}`)
  }
}
const keys = (Object.keys(columns) as (keyof typeof columns)[]).filter((key) => figures[0]?.[0]?.[key] !== undefined)
const rows = keys.map((key) => [
  columns[key],
  ...figures.map((each) => {
    const all = each.map((figure) => figure[key]!)
    return `${median(all).toFixed(1)} (${Math.min(...all).toFixed(1)})`
  }),
])
console.log(table(['', ...ways.map(({ name }) => name)], rows))
console.log(`
${values.services} services with ${values.endpoints} endpoints, ${values.changes} changes; median (lowest) of ${values.rounds} rounds.`)
process.exit(0)
