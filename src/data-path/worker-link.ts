// The control side's end of a data-path thread.

import { MessageChannel, type MessagePort, Worker } from 'node:worker_threads'
import { keepNurserySmall } from '../system/give-back.ts'
import { tryCall } from '../system/libc.ts'
import { threadProgram } from '../system/thread-program.ts'
import type { PortRange } from './port-range.ts'
import type { Command, AffinityEntry, Report } from './pool.ts'
import type { WorkersMemory } from './workers.ts'

export interface CommonSettings {
  readonly udpIdleMs: number
  /** Memory of SourcePorts. */
  readonly sourcePorts: SharedArrayBuffer
  /** The ports at which connections begin. */
  readonly ephemeral: PortRange
  readonly workers: WorkersMemory
}

export interface WorkerSettings extends CommonSettings {
  readonly index: number
  readonly port: MessagePort
  /** One word: not 0 when the thread is to end. */
  readonly stopped: SharedArrayBuffer
}

export interface WorkerLinkOptions {
  readonly index: number
  readonly settings: CommonSettings
  readonly onWarning: (message: string) => void
  /** The thread died. Its connections are lost. */
  readonly onFailed: (error: Error) => void
}

const ONE = new BigUint64Array([1n])

const PROGRAM = threadProgram(import.meta.url, {
  ts: '../../dist/src/data-path/worker.js',
  js: './worker.js',
  cjs: './worker.cjs',
})

/** Starts a thread and sends commands to it. */
export class WorkerLink {
  readonly #worker: Worker
  readonly #port: MessagePort
  readonly #wakeFd: number
  readonly #stopped = new SharedArrayBuffer(4)
  readonly #waiting: (() => void)[] = []
  readonly #affinityRequests = new Map<number, (entry: AffinityEntry | undefined) => void>()
  #lastQuestion = 0
  /** Node runs in it. */
  #isOnline = false
  /** Commands of this turn. */
  #posted = 0
  /** It was asked to end, or has failed. */
  #isEnding = false

  constructor({ index, settings: common, onWarning, onFailed }: WorkerLinkOptions) {
    this.#wakeFd = common.workers.wakeFds[index]!
    const { port1, port2 } = new MessageChannel()
    this.#port = port1
    const settings: WorkerSettings = { ...common, index, port: port2, stopped: this.#stopped }
    this.#worker = new Worker(PROGRAM, {
      workerData: settings,
      transferList: [port2],
      name: `userspace-${index}`,
      // It allocates little and keeps little.
      resourceLimits: { maxYoungGenerationSizeMb: 4 },
    })
    const fail = (error: Error) => {
      if (!this.#isEnding) onFailed(error)
      this.#isEnding = true
    }
    this.#worker.once('online', () => {
      this.#isOnline = true
      keepNurserySmall()
    })
    this.#worker.on('error', fail)
    // The error event may come after the exit event.
    this.#worker.on('exit', (code) => setImmediate(fail, new Error(`it ended with status ${code}`)))
    this.#worker.unref()
    port1.on('message', (report: Report) => {
      if (report.kind === 'warning') onWarning(report.message)
      else if (report.kind === 'affinity') this.#affinityRequests.get(report.id)?.(report.entry)
      else this.#waiting.shift()?.()
    })
    port1.unref()
  }

  /** The thread is woken at once, and, if more commands follow in this turn, once again for all of them. */
  post(command: Command): void {
    // The first sync posts thousands before Node reports, in the next turn, that the thread is online.
    if (!this.#isOnline) keepNurserySmall()
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- That is for windows.
    this.#port.postMessage(command)
    this.#posted++
    if (this.#posted > 1) return
    this.#wake()
    queueMicrotask(() => {
      if (this.#posted > 1) this.#wake()
      this.#posted = 0
    })
  }

  /** Resolves when the thread has carried out all commands and taken all that other threads handed over before. */
  async done(): Promise<void> {
    this.#port.ref()
    await new Promise<void>((resolve) => {
      this.#waiting.push(resolve)
      this.post({ kind: 'report when done' })
    })
    if (this.#waiting.length === 0) this.#port.unref()
  }

  /** The thread's affinity entry for a client of a pool. */
  async findAffinity(pool: number, client: string): Promise<AffinityEntry | undefined> {
    const id = ++this.#lastQuestion
    const entry = await new Promise<AffinityEntry | undefined>((resolve) => {
      this.#affinityRequests.set(id, resolve)
      this.post({ kind: 'find affinity', id, pool, client })
    })
    this.#affinityRequests.delete(id)
    return entry
  }

  /** Ends the thread; its connections end with it. */
  async stop(): Promise<void> {
    const ended = new Promise((resolve) => this.#worker.once('exit', resolve))
    this.#worker.ref()
    this.askToStop()
    await ended
    this.#port.close()
  }

  /** Does not wait for it. */
  askToStop(): void {
    this.#isEnding = true
    Atomics.store(new Int32Array(this.#stopped), 0, 1)
    this.#wake()
  }

  #wake(): void {
    tryCall('write', this.#wakeFd, ONE, 8)
  }
}
