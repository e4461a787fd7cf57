// One loop for all controllers: keys that need a look, each looked at once however often it was named. What a controller
// does is synchronous, because the API beside it is; what takes time (starting a pod) happens elsewhere and names the key
// again when it is done.

import type { Clock, Timer } from '../../../../src/lib/clock.ts'
import type { Logger } from '../../../../src/lib/log.ts'

export interface ControlLoopOptions {
  readonly clock: Clock
  readonly log: Logger
}

export interface WorkQueue {
  readonly add: (key: string) => void
  /** At the latest then; an earlier time that was asked for before stands. */
  readonly addAfter: (key: string, delayMs: number) => void
}

type Reconcile = (key: string) => void

const firstRetryMs = 10
const longestRetryMs = 5000
/** After this long the loop lets others have a turn. */
const turnMs = 8

interface Work {
  readonly queue: string
  readonly key: string
  readonly reconcile: Reconcile
}

export class ControlLoop {
  readonly #options: ControlLoopOptions
  readonly #work = new Map<string, Work>()
  readonly #later = new Map<string, { readonly timer: Timer; readonly dueMs: number }>()
  readonly #failures = new Map<string, number>()
  #turn: Timer | undefined
  #stopped = false

  constructor(options: ControlLoopOptions) {
    this.#options = options
  }

  queue(name: string, reconcile: Reconcile): WorkQueue {
    return {
      add: (key) => this.#add({ queue: name, key, reconcile }),
      addAfter: (key, delayMs) => this.#addAfter({ queue: name, key, reconcile }, delayMs),
    }
  }

  get isIdle(): boolean {
    return this.#work.size === 0
  }

  stop(): void {
    this.#stopped = true
    this.#turn?.cancel()
    for (const { timer } of this.#later.values()) timer.cancel()
    this.#later.clear()
    this.#work.clear()
  }

  #add(work: Work): void {
    if (this.#stopped) return
    this.#work.set(idOf(work), work)
    this.#turn ??= this.#options.clock.setImmediate(() => this.#run())
  }

  #addAfter(work: Work, delayMs: number): void {
    const id = idOf(work)
    const dueMs = this.#options.clock.monotonicNow() + delayMs
    const before = this.#later.get(id)
    if (this.#stopped || (before !== undefined && before.dueMs <= dueMs)) return
    before?.timer.cancel()
    const timer = this.#options.clock.setTimeout(() => {
      this.#later.delete(id)
      this.#add(work)
    }, delayMs)
    this.#later.set(id, { timer, dueMs })
  }

  #run(): void {
    const endMs = performance.now() + turnMs
    for (const [id, work] of this.#work) {
      this.#work.delete(id)
      this.#reconcile(id, work)
      if (performance.now() > endMs) break
    }
    this.#turn = this.#work.size === 0 ? undefined : this.#options.clock.setImmediate(() => this.#run())
  }

  #reconcile(id: string, work: Work): void {
    try {
      work.reconcile(work.key)
      this.#failures.delete(id)
    } catch (error) {
      const failures = (this.#failures.get(id) ?? 0) + 1
      this.#failures.set(id, failures)
      this.#options.log.error(error, 'A controller failed, and tries again', { controller: work.queue, key: work.key })
      this.#addAfter(work, Math.min(longestRetryMs, firstRetryMs * 2 ** (failures - 1)))
    }
  }
}

function idOf({ queue, key }: Work): string {
  return `${queue} ${key}`
}
