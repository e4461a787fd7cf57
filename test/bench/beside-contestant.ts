// A proxy that is measured from the outside, whichever it is.

import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { cpuOf, rssKbOf } from './process-cost.ts'

/** This program as it is installed on nodes. The Node that runs it is the one in PATH. */
export const shippedProgram: string = new URL('../../../../dist/release/kube-proxy.cjs', import.meta.url).pathname

/** What every proxy is started with that is measured beside another. */
export function benchFlags(mode: string, kubeconfig: string): readonly string[] {
  return [
    `--kubeconfig=${kubeconfig}`,
    `--proxy-mode=${mode}`,
    '--hostname-override=bench',
    '--cluster-cidr=10.0.0.0/8',
    // Of the machine, not of the namespace.
    '--conntrack-max-per-core=0',
    '--conntrack-tcp-timeout-established=0s',
    '--conntrack-tcp-timeout-close-wait=0s',
    '--oom-score-adj=0',
  ]
}

/** As on a node. Settings of a developer's shell are not part of it: NODE_EXTRA_CA_CERTS alone takes 40 ms of each start of Node 20. */
export const benchEnvironment: NodeJS.ProcessEnv = { PATH: process.env['PATH'] }

export class Contestant implements AsyncDisposable {
  readonly #folder = mkdtempSync(join(tmpdir(), 'beside-'))
  readonly #child: ChildProcess

  constructor(program: string, mode: string, kubeconfig: string, more: readonly string[] = []) {
    const log = openSync(join(this.#folder, 'log'), 'w')
    const flags = [...benchFlags(mode, kubeconfig), ...more]
    const words = ['--pdeathsig', 'KILL', '--', program, ...flags]
    this.#child = spawn('setpriv', words, { stdio: ['ignore', log, log], env: benchEnvironment })
  }

  /** How it ended, with what it said; undefined while it runs. */
  get ended(): string | undefined {
    const { exitCode, signalCode } = this.#child
    if (exitCode === null && signalCode === null) return undefined
    return `${exitCode ?? signalCode}: ${readFileSync(join(this.#folder, 'log'), 'utf8').slice(-2000)}`
  }

  /** Whether its log has these words. */
  said(words: string): boolean {
    return readFileSync(join(this.#folder, 'log'), 'utf8').includes(words)
  }

  /** Of the process, and of the programs that it ran and that have ended. */
  cpu(): ReturnType<typeof cpuOf> {
    return cpuOf(this.#child.pid!)
  }

  rssMb(): number {
    return rssKbOf(this.#child.pid!) / 1024
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.ended === undefined) {
      const ended = once(this.#child, 'exit')
      this.#child.kill('SIGTERM')
      await ended
    }
    rmSync(this.#folder, { recursive: true })
  }
}
