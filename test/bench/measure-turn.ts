// One start of a program, changes, and a rest: what they cost.

import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, openSync, readFileSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { BenchApi } from './beside-api.ts'
import { benchEnvironment, benchFlags } from './beside-contestant.ts'
import { flushRules } from './netns.ts'
import type { ApiObject } from '../support/api-server/objects.ts'

/** Milliseconds and megabytes. */
export const columns = {
  live: 'start to live, ms',
  startCpu: 'CPU of the start, ms',
  startMain: 'of it of the main thread, ms',
  startSystem: 'of it in the kernel, ms',
  peak: 'highest after the start, MB',
  changesCpu: 'CPU of the changes, ms',
  busy: 'after the changes, MB',
  busyFile: 'of it pages of files, MB',
  idleCpu: 'CPU of the rest, ms',
  wakeups: 'wakeups in the rest',
  rest: 'at rest, MB',
} as const
export type Figures = Partial<Record<keyof typeof columns, number>>

const CHANGE_EVERY_MS = 10
const CLOCK_TICKS = 100

class Process {
  readonly #child: ChildProcess
  readonly #folder = mkdtempSync(join(tmpdir(), 'bench-turns-'))
  readonly startMs = Date.now()

  constructor(command: readonly string[], mode: string, kubeconfig: string) {
    const log = openSync(join(this.#folder, 'log'), 'w')
    const words = ['--pdeathsig', 'KILL', '--', ...command, ...benchFlags(mode, kubeconfig)]
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

export interface Turn {
  readonly mode: string
  /** Made one in 10 ms; with none, only the start is measured, and a rest if there is to be one. */
  readonly changes: number
  readonly restMs: number
}

/** Starts a program, changes these slices, leaves it alone, and ends it. */
export async function measureTurn(
  command: readonly string[],
  { mode, changes, restMs }: Turn,
  api: Pick<BenchApi, 'kubeconfig' | 'put'>,
  slices: readonly ApiObject[],
): Promise<Figures> {
  flushRules()
  const program = new Process(command, mode, api.kubeconfig)
  const live = await program.live()
  const { all: startCpu, system: startSystem } = program.cpuMs()
  const startMain = program.mainCpuMs()
  await sleep(1000)
  const start: Figures = { live, startCpu, startMain, startSystem, peak: program.memoryMb('VmHWM') }
  if (changes === 0) {
    await sleep(restMs)
    const rest = program.memoryMb('VmRSS')
    await program.stop()
    return restMs === 0 ? start : { ...start, rest }
  }
  await sleep(3000)
  const before = program.threads()
  for (let i = 0; i < changes; i++) {
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
  await sleep(restMs)
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
