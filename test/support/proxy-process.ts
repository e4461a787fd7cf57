// The program under test, as a user starts it: a process in the node's namespace, known by its flags, ports and log.

import { closeSync, existsSync, fstatSync, mkdtempSync, openSync, readSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { modeNames } from '../../src/modes/all.ts'
import { effectiveSettings } from '../conformance/packet-flow.ts'
import { node } from './addresses.ts'
import { eventually } from './eventually.ts'
import { patience } from './patience.ts'
import { httpGet } from './netns/probe.ts'
import type { ChildProcess } from 'node:child_process'
import type { HttpAnswer } from './netns/probe.ts'
import type { Netns } from './netns/netns.ts'
import type { ModeName } from '../conformance/modes.ts'
import type { ProxySettings } from '../conformance/packet-flow.ts'

export interface ProxyOptions {
  readonly netns: Netns
  readonly mode: ModeName
  /** How to start the program, when it is not as usual. */
  readonly command?: readonly string[]
  readonly kubeconfig: string
  readonly settings?: ProxySettings
  /** Further flags; of two with the same name the later one counts. */
  readonly args?: readonly string[]
  /** Instead of the environment of this process. */
  readonly env?: NodeJS.ProcessEnv
}

export const healthzPort = 10256
export const metricsPort = 10249

/** Another program can be put to the same tests: PROXY_COMMAND="/usr/local/bin/kube-proxy --kube-api-content-type=application/json". */
export function proxyCommand(): readonly string[] {
  const given = process.env['PROXY_COMMAND']
  return given === undefined ? [join(import.meta.dirname, '../../bin/kube-proxy')] : given.split(' ')
}

/** Why a mode cannot be tried here; undefined when it can. */
export function whyNotRun(mode: ModeName): string | undefined {
  const hasMode = process.env['PROXY_COMMAND'] !== undefined || modeNames.includes(mode)
  if (!hasMode) return `the program has no ${mode} mode yet`
  return mode === 'ipvs' && !existsSync('/proc/net/ip_vs') ? 'this kernel has no IPVS' : undefined
}

/** How a proxy is started. */
export type ProxyRun = Pick<ProxyOptions, 'command' | 'env'>

export class ProxyProcess implements AsyncDisposable {
  readonly #child: ChildProcess
  readonly #netns: Netns
  readonly #log: number
  readonly exited: Promise<string>
  #ended: string | undefined
  #isDisposed = false

  constructor(netns: Netns, args: readonly string[], { command = proxyCommand(), env }: ProxyRun = {}) {
    this.#netns = netns
    // A file without a name: nothing is left of it, however the test ends.
    const folder = mkdtempSync(join(tmpdir(), 'kube-proxy-test-'))
    this.#log = openSync(join(folder, 'log'), 'a+')
    rmSync(folder, { recursive: true })
    this.#child = netns.spawn([...command, ...args], {
      stdio: ['ignore', this.#log, this.#log],
      ...(env && { env }),
    })
    this.exited = new Promise((resolve) => {
      this.#child.once('error', (error) => resolve((this.#ended = error.message)))
      this.#child.once('exit', (code, signal) => resolve((this.#ended = `${code ?? signal}`)))
    })
  }

  get pid(): number {
    return this.#child.pid ?? 0
  }

  /** How the process ended; undefined while it runs. */
  get ended(): string | undefined {
    return this.#ended
  }

  /** All that the process has printed. */
  log(): string {
    const text = Buffer.alloc(fstatSync(this.#log).size)
    readSync(this.#log, text, 0, text.length, 0)
    return text.toString()
  }

  /** Asks the health server, from the node itself. */
  health(path: '/healthz' | '/livez' = '/healthz'): Promise<HttpAnswer | undefined> {
    return httpGet(this.#netns, { address: '127.0.0.1', port: healthzPort }, { path })
  }

  /** Asks the metrics server, from the node itself. */
  ask(path: string): Promise<HttpAnswer | undefined> {
    return httpGet(this.#netns, { address: '127.0.0.1', port: metricsPort }, { path })
  }

  /** Waits until /healthz says that all is well: the rules of the first sync are in the kernel. */
  async ready(withinMs = 20_000): Promise<void> {
    await eventually(
      'the proxy is healthy',
      async () => {
        if (this.#ended !== undefined) return { fatal: `it ended (${this.#ended})` }
        const answer = await this.health()
        return answer?.status === 200 ? undefined : `${answer?.status ?? 'no answer'} ${answer?.body ?? ''}`
      },
      // Each question takes time from the proxy that it waits for.
      { withinMs, everyMs: 10 * patience() },
    ).catch((error: unknown) => {
      throw new Error(`${String(error)}\n${this.logTail()}`, { cause: error })
    })
  }

  logTail(lines = 30): string {
    return this.log().split('\n').slice(-lines).join('\n')
  }

  /** Sends a signal and waits for the end. */
  async stop(signal: NodeJS.Signals = 'SIGKILL'): Promise<string> {
    if (this.#ended === undefined) this.#child.kill(signal)
    return this.exited
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
    if (!this.#isDisposed) closeSync(this.#log)
    this.#isDisposed = true
  }
}

/** Starts the program and waits until it is healthy. */
export async function startProxy(options: ProxyOptions): Promise<ProxyProcess> {
  const proxy = new ProxyProcess(options.netns, proxyFlags(options), options)
  try {
    await proxy.ready()
  } catch (error) {
    await proxy[Symbol.asyncDispose]()
    throw error
  }
  return proxy
}

/** The flags that say the same as the settings. */
export function proxyFlags({ mode, kubeconfig, settings = {}, args = [] }: ProxyOptions): string[] {
  const effective = effectiveSettings(settings)
  const flags: Record<string, string | undefined> = {
    'proxy-mode': mode,
    kubeconfig,
    'hostname-override': node.name,
    'healthz-bind-address': `0.0.0.0:${healthzPort}`,
    'metrics-bind-address': `127.0.0.1:${metricsPort}`,
    // Limits that belong to the machine, not to the namespace.
    'conntrack-max-per-core': '0',
    'oom-score-adj': '0',
    'detect-local-mode': effective.detectLocalMode,
    'cluster-cidr': effective.clusterCIDR === '' ? undefined : effective.clusterCIDR,
    'pod-bridge-interface': effective.podBridgeInterface,
    'pod-interface-name-prefix': effective.podInterfaceNamePrefix,
    'masquerade-all': effective.masqueradeAll === true ? 'true' : undefined,
    'answer-ping': effective.answerPing === true ? 'true' : undefined,
    'nodeport-addresses': effective.nodePortAddresses?.join(','),
    'feature-gates': effective.localhostNodePorts && 'KubeProxyNFTablesLocalhostNodePorts=true',
  }
  return [
    ...Object.entries(flags).flatMap(([name, value]) => (value === undefined ? [] : [`--${name}=${value}`])),
    ...args,
  ]
}
