// This program as a child process, and what it costs.

import { spawn, type ChildProcess } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import http from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { benchEnvironment, shippedProgram } from './beside-contestant.ts'
import { cpuOf, peakKbOf, rssKbOf } from './process-cost.ts'

const METRICS_PORT = 10249

export class MeasuredProxy implements AsyncDisposable {
  readonly #folder: string
  readonly #child: ChildProcess
  readonly #startedMs: number

  private constructor(folder: string, child: ChildProcess) {
    this.#folder = folder
    this.#child = child
    this.#startedMs = Date.now()
  }

  static async start(
    server: string,
    { mode = 'nftables', flags: more = [] }: { mode?: string; flags?: readonly string[] } = {},
  ): Promise<MeasuredProxy> {
    const folder = mkdtempSync(join(tmpdir(), 'kube-proxy-bench-'))
    const kubeconfig = join(folder, 'kubeconfig')
    writeFileSync(
      kubeconfig,
      JSON.stringify({
        clusters: [{ name: 'c', cluster: { server } }],
        users: [{ name: 'u', user: {} }],
        contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
        'current-context': 'x',
      }),
    )
    const flags = [`--proxy-mode=${mode}`, '--hostname-override=bench', '--cluster-cidr=10.0.0.0/8', ...more]
    const args = [...flags, `--kubeconfig=${kubeconfig}`, '--conntrack-max-per-core=0']
    await makeReady(server)
    return new MeasuredProxy(
      folder,
      spawn(shippedProgram, args, { stdio: ['ignore', 'ignore', 'inherit'], env: benchEnvironment }),
    )
  }

  /** Milliseconds from the start to the first complete set of rules. The program notes the time; asking for it can wait. */
  async live(): Promise<number> {
    for (;;) {
      const seconds = await this.metric('kubeproxy_sync_proxy_rules_last_timestamp_seconds{ip_family="IPv4"}')
      if (seconds > 0) return seconds * 1000 - this.#startedMs
      if (this.#child.exitCode !== null) throw new Error(`Cannot measure: the program ended (${this.#child.exitCode})`)
      await sleep(200)
    }
  }

  /**
   * What the program itself measures from the event to the kernel's acknowledgement of the change. It is asked this often:
   * answering takes time as well.
   */
  async oneChange(change: () => void, everyMs = 10): Promise<number> {
    const name = 'kubeproxyts_change_duration_seconds'
    const read = async () => {
      const text = await this.#metrics()
      return [`${name}_count{ip_family="IPv4"}`, `${name}_sum{ip_family="IPv4"}`].map((key) => valueOf(text, key))
    }
    const [countBefore, sumBefore] = await read()
    change()
    for (;;) {
      await sleep(everyMs)
      const [count, sum] = await read()
      if (count! > countBefore!) return ((sum! - sumBefore!) / (count! - countBefore!)) * 1000
    }
  }

  async metric(key: string): Promise<number> {
    return valueOf(await this.#metrics().catch(() => ''), key)
  }

  cpuMs(): number {
    return cpuOf(this.#child.pid!).ownMs
  }

  /** Of the programs that it ran and that have ended. */
  programsCpuMs(): number {
    return cpuOf(this.#child.pid!).childrenMs
  }

  rssMb(): number {
    return rssKbOf(this.#child.pid!) / 1024
  }

  peakMb(): number {
    return peakKbOf(this.#child.pid!) / 1024
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const ended = new Promise((resolve) => this.#child.once('exit', resolve))
    this.#child.kill('SIGTERM')
    await ended
    rmSync(this.#folder, { recursive: true })
  }

  #metrics(): Promise<string> {
    return new Promise((resolve, reject) => {
      const request = http.get(
        { host: '127.0.0.1', port: METRICS_PORT, path: '/metrics', agent: false },
        (response) => {
          let text = ''
          response.setEncoding('utf8')
          response.on('data', (chunk: string) => (text += chunk))
          response.on('end', () => resolve(text))
        },
      )
      request.on('error', reject)
    })
  }
}

/** A real API server has its answers in a cache before the proxy asks. */
export async function makeReady(server: string): Promise<void> {
  const headers = { accept: 'application/vnd.kubernetes.protobuf' }
  for (const path of ['/api/v1/services', '/apis/discovery.k8s.io/v1/endpointslices', '/api/v1/nodes']) {
    for (let i = 0; i < 3; i++) await (await fetch(new URL(path, server), { headers })).arrayBuffer()
  }
}

function valueOf(text: string, key: string): number {
  const start = text.indexOf(`\n${key} `)
  return start < 0 ? 0 : Number(text.slice(start + key.length + 2, text.indexOf('\n', start + 1)))
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
