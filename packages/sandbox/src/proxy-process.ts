// The proxy of a node: the real program as a process of its own in the node's namespace. Like the kubelet, the sandbox
// starts it again when it ends.

import { spawn, type ChildProcess, type SpawnOptions } from 'node:child_process'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { get } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { NodeNetwork } from './netns/cluster-network.ts'

const MAIN = fileURLToPath(new URL('../../../src/cli/main.js', import.meta.url))
/** How this program is started from within the sandbox. */
export const ownProgram = (): string[] => [process.execPath, ...process.execArgv, MAIN]
const DIE_WITH_PARENT = new URL('netns/die-with-parent.js', import.meta.url).href
const HEALTHZ_PORT = 10256
const FIRST_RESTART_MS = 100
const MAX_RESTART_MS = 5000
const MODULES_REMEDY = ' (modprobe loads them; Debian has them in linux-image-*, Ubuntu also in linux-modules-extra-*)'
/** After this long it counts as having worked. */
const STABLE_MS = 10_000

export interface ProxyProcessOptions {
  readonly node: NodeNetwork
  readonly flags: readonly string[]
  readonly logFile: string
  /** Called when the process ended by itself, before it is started again. */
  readonly onEnded: (how: string) => void
}

export class ProxyProcess {
  readonly #options: ProxyProcessOptions
  #child: ChildProcess | undefined
  #ended: Promise<void> = Promise.resolve()
  #restarts = 0
  #delayMs = FIRST_RESTART_MS
  #timer: NodeJS.Timeout | undefined
  #stopped = false

  constructor(options: ProxyProcessOptions) {
    this.#options = options
    this.#start()
  }

  get pid(): number | undefined {
    return this.#child?.pid
  }

  get restarts(): number {
    return this.#restarts
  }

  /** Whether its health server says that the node's rules are in place. */
  health(): Promise<'healthy' | 'unhealthy' | 'no answer'> {
    const host = this.#options.node.plan.addresses[0]
    return new Promise((resolve) => {
      const request = get({ host, port: HEALTHZ_PORT, path: '/healthz', timeout: 1000, agent: false }, (response) => {
        response.resume()
        resolve(response.statusCode === 200 ? 'healthy' : 'unhealthy')
      })
      request.on('timeout', () => request.destroy())
      request.on('error', () => resolve('no answer'))
    })
  }

  /** Waits until it is healthy. Throws with what it said last when it ends instead, or when that takes too long. */
  async ready(withinMs: number): Promise<void> {
    const deadline = performance.now() + withinMs
    while ((await this.health()) !== 'healthy') {
      const { node, logFile } = this.#options
      if (this.#restarts > 0) {
        const reason = lastError(readFileSync(logFile, 'utf8')) ?? 'it ended'
        const remedy = /kernel modules?/.test(reason) ? MODULES_REMEDY : ''
        throw new Error(`Cannot start the proxy of ${node.plan.name}: ${reason}${remedy}`)
      }
      if (performance.now() > deadline) {
        throw new Error(
          `Cannot see the proxy of ${node.plan.name} become healthy within ${withinMs} ms; see ${logFile}`,
        )
      }
      await sleep(10)
    }
  }

  /** Ends it for good. Its rules end with the node's namespace. */
  async stop(): Promise<void> {
    this.#stopped = true
    clearTimeout(this.#timer)
    this.#child?.kill('SIGTERM')
    const killer = setTimeout(() => this.#child?.kill('SIGKILL'), 2000)
    await this.#ended
    clearTimeout(killer)
  }

  #start(): void {
    const { node, flags, logFile } = this.#options
    const startedMs = performance.now()
    const log = openSync(logFile, 'a')
    const env = { ...withoutProxies(process.env), KUBE_PROXY_SANDBOX_PID: String(process.pid) }
    // Detached: Ctrl-C is for the sandbox, which ends the proxies itself.
    const options = { stdio: ['ignore', log, log], env, detached: true } satisfies SpawnOptions
    const args = [...process.execArgv, `--import=${DIE_WITH_PARENT}`, MAIN, ...flags]
    const child = node.netns.enter(() => spawn(process.execPath, args, options))
    closeSync(log)
    this.#child = child
    this.#ended = new Promise((resolve) => {
      child.once('error', () => resolve())
      child.once('exit', (code, signal) => {
        resolve()
        if (performance.now() - startedMs > STABLE_MS) this.#delayMs = FIRST_RESTART_MS
        this.#child = undefined
        if (!this.#stopped) this.#restart(signal ?? `status ${code}`)
      })
    })
  }

  #restart(how: string): void {
    this.#restarts++
    this.#options.onEnded(how)
    this.#timer = setTimeout(() => this.#start(), this.#delayMs)
    this.#delayMs = Math.min(this.#delayMs * 2, MAX_RESTART_MS)
  }
}

/** An HTTP proxy of the machine's network is of no use on a node, which has no way to it. */
function withoutProxies(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !/^(https?|all|no)_proxy$/i.test(name)))
}

/** The flags that a node's proxy is started with. */
export function proxyFlags(options: {
  readonly mode: string
  readonly kubeconfig: string
  readonly nodeName: string
  readonly podRanges: readonly string[]
  readonly controlSocket: string
  readonly extra: readonly string[]
}): string[] {
  return [
    `--proxy-mode=${options.mode}`,
    `--kubeconfig=${options.kubeconfig}`,
    `--hostname-override=${options.nodeName}`,
    `--cluster-cidr=${options.podRanges.join(',')}`,
    `--control-socket=${options.controlSocket}`,
    // A user that asks for a mode wants to see that mode.
    '--strict-proxy-mode',
    // The page and kubectl turn it on for one Service.
    '--connect-retry=annotated',
    // Asked for from outside the node.
    `--healthz-bind-address=0.0.0.0:${HEALTHZ_PORT}`,
    // Settings of the whole machine, which is not the sandbox's to change.
    '--conntrack-max-per-core=0',
    '--oom-score-adj=0',
    ...options.extra,
  ]
}

/** The last error in a log of klog's format, what the command line complained about, or the last line. */
export function lastError(log: string): string | undefined {
  const lines = log.trimEnd().split('\n')
  const [, quoted] = / err=("(?:[^"\\]|\\.)*")/.exec(lines.findLast((line) => /^E\d{4} /.test(line)) ?? '') ?? []
  if (quoted !== undefined) return JSON.parse(quoted) as string
  const [, complaint] = /^kube-proxy: (.+)$/m.exec(log) ?? []
  return complaint ?? lines.at(-1)
}
