// A sandbox as a user has it: a process, what it prints, and the commands that go with it.

import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import { checkout } from '../../support/checkout.ts'
import { eventually } from '../../support/eventually.ts'
import { askPlace, askStatus, type SandboxStatus } from '../../../packages/sandbox/src/instance/control.ts'
import { NetworkNamespace } from '../../../packages/sandbox/src/netns/network-namespace.ts'
import { ApiAccess } from './api-access.ts'

export const program = join(checkout, 'bin/kube-proxy')

export interface Finished {
  readonly status: number | null
  readonly stdout: string
  readonly stderr: string
}

/** Runs `kube-proxy sandbox ...` to its end. */
export function runSandbox(root: string, ...args: readonly string[]): Finished {
  const env = { ...process.env, KUBE_PROXY_SANDBOX_DIR: root }
  return spawnSync(program, ['sandbox', ...args], { encoding: 'utf8', env, timeout: 60_000 })
}

export class SandboxProcess implements AsyncDisposable {
  readonly root: string
  readonly #child: ChildProcess
  readonly exited: Promise<number | NodeJS.Signals>
  #output = ''
  #ended: number | NodeJS.Signals | undefined
  #api: ApiAccess | undefined

  constructor(root: string, args: readonly string[]) {
    this.root = root
    const env = { ...process.env, KUBE_PROXY_SANDBOX_DIR: root }
    this.#child = spawn(program, ['sandbox', ...args], { env, stdio: ['ignore', 'pipe', 'pipe'] })
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => (this.#output += text))
    }
    this.exited = new Promise((resolve) => {
      this.#child.once('exit', (code, signal) => resolve((this.#ended = code ?? signal ?? 0)))
    })
  }

  static async start(root: string, ...args: readonly string[]): Promise<SandboxProcess> {
    const sandbox = new SandboxProcess(root, args)
    try {
      await sandbox.ready()
    } catch (error) {
      await sandbox[Symbol.asyncDispose]()
      throw error
    }
    return sandbox
  }

  get output(): string {
    return this.#output
  }

  get pid(): number {
    return this.#child.pid ?? 0
  }

  /** Its name, as the path of its kubeconfig tells. */
  get name(): string {
    return /\/([^/\s]+)\/kubeconfig$/m.exec(this.#output)?.[1] ?? ''
  }

  path(file: string): string {
    return join(this.root, this.name, file)
  }

  async ready(): Promise<void> {
    await eventually(
      'the sandbox is ready',
      () => {
        if (/^Ctrl-C takes everything down/m.test(this.#output)) return undefined
        return this.#ended === undefined ? this.#output : { fatal: `it ended (${this.#ended}): ${this.#output}` }
      },
      { withinMs: 30_000, everyMs: 5 },
    )
  }

  get api(): ApiAccess {
    return (this.#api ??= new ApiAccess(parse(readFileSync(this.path('kubeconfig'), 'utf8'))))
  }

  status(): Promise<SandboxStatus> {
    return askStatus(this.path('control.sock'))
  }

  /** The network of a pod, a node or the machine, to open sockets in. */
  async place(name: string): Promise<NetworkNamespace> {
    const place = await askPlace(this.path('control.sock'), name)
    if ('problem' in place) throw new Error(`Cannot find ${name}: ${place.problem}`)
    return new NetworkNamespace(name, openSync(place.netns, 'r'))
  }

  run(...args: readonly string[]): Finished {
    return runSandbox(this.root, '--name', this.name, ...args)
  }

  /** Starts `kube-proxy sandbox ...`, which ends when it is told to. */
  start(...args: readonly string[]): ChildProcess {
    const env = { ...process.env, KUBE_PROXY_SANDBOX_DIR: this.root }
    return spawn(program, ['sandbox', '--name', this.name, ...args], { env, stdio: ['ignore', 'pipe', 'inherit'] })
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#ended === undefined) this.#child.kill('SIGTERM')
    const killer = setTimeout(() => this.#child.kill('SIGKILL'), 10_000)
    await this.exited
    clearTimeout(killer)
  }
}
