// What a start costs, for several ways of starting, in turns: A B A B, so that a busy machine disturbs all of them alike.
//   npm run bench:start -- [--rounds 5] [--services 1000] [--endpoints 10] [NAME=COMMAND ...]
//
// A COMMAND is a program with arguments; this program as it is shipped, on the Node in PATH, when none is given. With
// KUBE_APISERVER=/path/to/kube-apiserver (and etcd in PATH) the API server is the real one; else it is that of the sandbox.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { setTimeout as sleep } from 'node:timers/promises'
import { unshareNetwork } from '../../src/system/netns.ts'
import { clusterOf } from '../support/api-server/sample-cluster.ts'
import { openApi } from './beside-api.ts'
import { median, table } from './figures.ts'
import { flushRules, setLoopbackUp } from './netns.ts'

const { values, positionals } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    services: { type: 'string', default: '1000' },
    endpoints: { type: 'string', default: '10' },
    log: { type: 'boolean', default: false },
  },
  allowPositionals: true,
})
const ours = new URL('../../../../dist/release/kube-proxy.mjs', import.meta.url).pathname
const ways = (positionals.length > 0 ? positionals : [`kube-proxy-ts=${ours}`]).map((each) => {
  const at = each.indexOf('=')
  return { name: each.slice(0, at), command: each.slice(at + 1).split(' ') }
})

interface Figures {
  readonly liveMs: number
  readonly cpuMs: number
  readonly systemMs: number
  readonly peakMb: number
  readonly rssMb: number
}

const CLOCK_TICKS = 100

async function measure(command: readonly string[], kubeconfig: string): Promise<Figures> {
  flushRules()
  const folder = mkdtempSync(join(tmpdir(), 'bench-start-'))
  const log = openSync(join(folder, 'log'), 'w')
  const flags = [
    `--kubeconfig=${kubeconfig}`,
    '--proxy-mode=nftables',
    '--hostname-override=bench',
    '--cluster-cidr=10.0.0.0/8',
    '--conntrack-max-per-core=0',
    '--conntrack-tcp-timeout-established=0s',
    '--conntrack-tcp-timeout-close-wait=0s',
    '--oom-score-adj=0',
  ]
  const words = ['--pdeathsig', 'KILL', '--', ...command, ...flags]
  const startMs = Date.now()
  const child = spawn('setpriv', words, { stdio: ['ignore', log, log] })
  const proc = (file: string) => readFileSync(`/proc/${child.pid}/${file}`, 'utf8')
  let liveMs = 0
  for (let i = 0; liveMs <= 0; i++) {
    await sleep(i === 0 ? 300 : 100)
    if (child.exitCode !== null) throw new Error(`Cannot measure: ${readFileSync(join(folder, 'log'), 'utf8')}`)
    liveMs = (await lastSync()) * 1000 - startMs
  }
  const ticks = proc('stat').split(') ').at(-1)!.split(' ')
  const peakMb = Number(/VmHWM:\s+(\d+)/.exec(proc('status'))![1]) / 1024
  await sleep(700)
  const rssMb = Number(/VmRSS:\s+(\d+)/.exec(proc('status'))![1]) / 1024
  const ended = once(child, 'exit')
  child.kill('SIGTERM')
  await ended
  if (values.log) console.error(readFileSync(join(folder, 'log'), 'utf8'))
  rmSync(folder, { recursive: true })
  const ms = (n: number) => (Number(ticks[n]) / CLOCK_TICKS) * 1000
  return { liveMs, cpuMs: ms(11) + ms(12), systemMs: ms(12), peakMb, rssMb }
}

/** When the first complete set of rules was in the kernel, in seconds since the epoch; 0 before. */
async function lastSync(): Promise<number> {
  const response = await fetch('http://127.0.0.1:10249/metrics').catch(() => undefined)
  const text = (await response?.text()) ?? ''
  const key = /^kubeproxy_sync_proxy_rules_last_timestamp_seconds\{ip_family="IPv4"\} (.*)$/m
  return Number(key.exec(text)?.[1] ?? 0)
}

if (process.getuid?.() !== 0) throw new Error('Cannot measure: needs root, to make a network namespace')
unshareNetwork()
setLoopbackUp()
await using api = await openApi(process.env['KUBE_APISERVER'])
await api.load([...clusterOf({ services: Number(values.services), endpointsPerService: Number(values.endpoints) })])
const figures = ways.map((): Figures[] => [])
for (let round = -1; round < Number(values.rounds); round++) {
  for (const [i, { command }] of ways.entries()) {
    const figure = await measure(command, api.kubeconfig)
    // The first fills caches.
    if (round >= 0) figures[i]!.push(figure)
  }
}
const rows = ways.map(({ name }, i) => {
  const of = (key: keyof Figures) => figures[i]!.map((each) => each[key])
  const both = (key: keyof Figures) => `${median(of(key)).toFixed(0)} (${Math.min(...of(key)).toFixed(0)})`
  return [name, both('liveMs'), both('cpuMs'), both('systemMs'), both('peakMb'), both('rssMb')]
})
console.log(table(['start', 'live, ms', 'CPU, ms', 'of it in the kernel, ms', 'highest, MB', 'RSS, MB'], rows))
console.log(`
${values.services} services with ${values.endpoints} endpoints, median (lowest) of ${values.rounds}.`)
process.exit(0)
