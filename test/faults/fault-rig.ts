// A node with the program under test in one mode, faults for its system calls, and an account of what is in the kernel.

import { readFileSync, writeFileSync } from 'node:fs'
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { expect } from 'vitest'
import { Cleanup } from '../support/cleanup.ts'
import { eventually } from '../support/eventually.ts'
import { proxyCommand, proxyFlags, ProxyProcess } from '../support/proxy-process.ts'
import { patience } from '../support/patience.ts'
import { openRig, type Rig } from '../support/rig.ts'
import type { ApiServerOptions } from '../support/api-server/api-server.ts'
import type { ApiObject } from '../support/builders.ts'
import { FaultShim } from './shim.ts'
import type { FaultyMode } from './modes.ts'

export class FaultRig implements AsyncDisposable {
  readonly mode: FaultyMode
  readonly rig: Rig
  readonly shim: FaultShim
  readonly #cleanup: Cleanup
  readonly #config: string
  #proxy: ProxyProcess | undefined

  private constructor(mode: FaultyMode, rig: Rig, cleanup: Cleanup, syncPeriod: string) {
    this.mode = mode
    this.rig = rig
    this.#cleanup = cleanup
    this.shim = cleanup.use(new FaultShim())
    this.#config = join(rig.cluster.folder, 'config.yaml')
    this.#writeConfig(syncPeriod)
  }

  static async open(
    mode: FaultyMode,
    objects: readonly ApiObject[],
    { api = {}, syncPeriod = '2s' }: { api?: ApiServerOptions; syncPeriod?: string } = {},
  ): Promise<FaultRig> {
    const cleanup = new Cleanup()
    const rig = cleanup.use(await openRig(api))
    mode.prepare(rig.network.node)
    rig.cluster.put(...objects)
    return new FaultRig(mode, rig, cleanup, syncPeriod)
  }

  get proxy(): ProxyProcess {
    if (this.#proxy === undefined) throw new Error('No proxy was started')
    return this.#proxy
  }

  /** Starts a process and does not wait for anything. It takes the place of the one before, which must have ended. */
  spawn(): ProxyProcess {
    this.#proxy = new ProxyProcess(this.rig.network.node, [`--config=${this.#config}`], { env: this.shim.env })
    return this.#proxy
  }

  async start(): Promise<ProxyProcess> {
    const proxy = this.spawn()
    await proxy.ready()
    return proxy
  }

  /** Another proxy on the same node, whose ports are others. */
  async startSecond(): Promise<ProxyProcess> {
    const config = join(this.rig.cluster.folder, 'second.yaml')
    const text = readFileSync(this.#config, 'utf8')
    writeFileSync(config, text.replaceAll('10256', '10266').replaceAll('10249', '10259'))
    return new ProxyProcess(this.rig.network.node, [`--config=${config}`], { env: this.shim.env })
  }

  async stop(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    await this.#proxy?.stop(signal)
    await this.#proxy?.[Symbol.asyncDispose]()
    this.#proxy = undefined
  }

  rules(): string {
    return this.mode.rules(this.rig.network.node)
  }

  /** What a proxy makes of the cluster on a node that never had one. Afterwards it runs. */
  async fromScratch(): Promise<string> {
    await this.stop()
    const cleanup = new ProxyProcess(this.rig.network.node, [`--config=${this.#config}`, '--cleanup'])
    expect(await cleanup.exited, cleanup.log()).toBe('0')
    await cleanup[Symbol.asyncDispose]()
    await this.start()
    await this.rig.settled(30_000)
    return this.steadyRules()
  }

  /** What the rules are when they change no more: empty chains, and what else waits, go a little later. */
  async steadyRules(): Promise<string> {
    let before = ''
    await eventually(
      'the rules are steady',
      () => {
        const now = this.rules()
        const isSteady = now === before
        before = now
        return isSteady ? undefined : 'they change'
      },
      { withinMs: 8000, everyMs: 300 },
    )
    return before
  }

  /** Waits until the rules are these. */
  async rulesBecome(expected: string, what: string, withinMs = 8000): Promise<void> {
    const differences = () => {
      const [now, then] = [new Set(this.rules().split('\n')), new Set(expected.split('\n'))]
      const tooMany = [...now].filter((line) => !then.has(line)).map((line) => `+ ${line}`)
      const missing = [...then].filter((line) => !now.has(line)).map((line) => `- ${line}`)
      return [...tooMany, ...missing]
    }
    await eventually(
      what,
      () => {
        const ended = this.#proxy?.ended
        if (ended !== undefined) return { fatal: `the proxy ended (${ended}):\n${this.#proxy?.logTail(15)}` }
        const lines = differences()
        return lines.length === 0 ? undefined : `${lines.length} lines differ:\n${lines.slice(0, 12).join('\n')}`
      },
      { withinMs, everyMs: 50 * patience() },
    ).catch((error: unknown) => {
      throw new Error(`${String(error)}\n${this.#proxy?.logTail(15)}`, { cause: error })
    })
  }

  expectAlive(): void {
    expect(this.proxy.ended, this.proxy.logTail(15)).toBeUndefined()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
    await this.#cleanup[Symbol.asyncDispose]()
  }

  /** From a file: not every mode has a flag for its sync period. */
  #writeConfig(syncPeriod: string): void {
    const { network, cluster } = this.rig
    const options = { netns: network.node, mode: this.mode.mode, kubeconfig: cluster.kubeconfig, args: this.mode.args }
    const [command, ...args] = [...proxyCommand(), ...proxyFlags(options), `--write-config-to=${this.#config}`]
    const { status, stderr } = spawnSync(command, args, { encoding: 'utf8' })
    if (status !== 0) throw new Error(`Cannot write a configuration: ${stderr}`)
    const text = readFileSync(this.#config, 'utf8').replaceAll(/^( +syncPeriod): .*$/gm, `$1: ${syncPeriod}`)
    writeFileSync(this.#config, text.replaceAll(/^( +minSyncPeriod): 1s$/gm, '$1: 10ms'))
  }
}
