// The control side's end of a data-path thread.

import { MessageChannel, type MessagePort, Worker } from 'node:worker_threads'
import { tryCall } from '../kernel/libc.ts'
import type { PortRange } from '../lib/port-range.ts'
import type { Command, Report } from './pool.ts'
import type { TeamMemory } from './team.ts'

/** What all threads are started with. */
export interface CommonSettings {
  readonly udpIdleMs: number
  /** Memory of SourcePorts. */
  readonly sourcePorts: SharedArrayBuffer
  /** The ports at which connections begin. */
  readonly ephemeral: PortRange
  readonly team: TeamMemory
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
  readonly onReport: (report: Report) => void
  /** The thread died. Its connections are lost. */
  readonly onFailed: (error: Error) => void
}

const ONE = new BigUint64Array([1n])

// Threads run compiled code only; from the sources, as in tests, they take it from the build.
const PROGRAM = new URL(
  import.meta.url.endsWith('.ts') ? '../../dist/userspace/worker.js' : './worker.js',
  import.meta.url,
)

/** Starts a thread and tells it things. */
export class WorkerLink {
  readonly #worker: Worker
  readonly #port: MessagePort
  readonly #wakeFd: number
  readonly #stopped = new SharedArrayBuffer(4)
  readonly #onExit = (): void => this.#askToStop()
  #isAwake = false

  constructor({ index, settings: common, onReport, onFailed }: WorkerLinkOptions) {
    this.#wakeFd = common.team.wakeFds[index]!
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
    this.#worker.on('error', onFailed)
    this.#worker.unref()
    port1.on('message', onReport)
    port1.unref()
    // A process ends only when its threads have, and this one may wait for a long time.
    process.on('exit', this.#onExit)
  }

  /** The thread reads all commands of this turn at once. */
  post(command: Command): void {
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- That is for windows.
    this.#port.postMessage(command)
    if (this.#isAwake) return
    this.#isAwake = true
    queueMicrotask(() => {
      this.#isAwake = false
      this.#wake()
    })
  }

  /** Ends the thread; its connections end with it. */
  async stop(): Promise<void> {
    process.off('exit', this.#onExit)
    const ended = new Promise((resolve) => this.#worker.once('exit', resolve))
    this.#worker.ref()
    this.#askToStop()
    await ended
    this.#port.close()
  }

  #askToStop(): void {
    Atomics.store(new Int32Array(this.#stopped), 0, 1)
    this.#wake()
  }

  #wake(): void {
    tryCall('write', this.#wakeFd, ONE, 8)
  }
}
