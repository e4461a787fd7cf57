// The question `changes`: the proxy records what it does only while a client keeps asking.

import type { ChangesAnswer, SyncChange } from '../serve/control/changes.ts'
import { allowArguments, type Question } from '../serve/control/questions.ts'
import type { Clock } from '../lib/clock.ts'
import type { RecordedChange, Recorder } from '../reconcile/recorder.ts'
import { Leases, LEASE_MS } from './leases.ts'
import { LONGEST_WAIT_MS, numberOf, Waiting } from './waiting.ts'

export interface TimelineOptions {
  readonly recorders: readonly Pick<Recorder, 'listen' | 'lastComparison'>[]
  readonly about: () => { readonly mode: string; readonly nodeName: string }
  readonly clock: Clock
}

/** The most changes, and the most characters of commands, that are kept. */
const MOST_CHANGES = 100
const MOST_CHARACTERS = 1_000_000

export class Timeline {
  readonly #options: TimelineOptions
  readonly #leases: Leases
  readonly #waiting: Waiting
  #changes: SyncChange[] = []
  #characters = 0
  #number = 0

  constructor(options: TimelineOptions) {
    this.#options = options
    this.#waiting = new Waiting(options.clock)
    this.#leases = new Leases(options.clock, () => this.#end())
  }

  readonly question: Question = {
    name: 'changes',
    what: `what is done to the kernel and why, after=N; waits for a change, up to wait=MS; records while the client keeps asking, at least every ${LEASE_MS / 1000} s`,
    answer: async (query, client) => {
      allowArguments(query, 'after', 'wait')
      const after = numberOf(query, 'after') ?? 0
      const waitMs = Math.min(numberOf(query, 'wait') ?? 0, LONGEST_WAIT_MS)
      if (!this.isOn) this.#begin()
      this.#leases.renew(client)
      if (this.#number <= after && waitMs > 0) await this.#waiting.next(waitMs, client.signal)
      return this.#answer(after)
    },
  }

  get isOn(): boolean {
    return this.#leases.size > 0
  }

  close(): void {
    this.#leases.close()
    this.#end()
    this.#waiting.wakeAll()
  }

  #begin(): void {
    for (const recorder of this.#options.recorders) {
      // What happened before is not remembered, but for the last comparison: after a restart, it is what a reader looks for.
      const comparison = recorder.lastComparison
      if (comparison !== undefined) this.#add(comparison)
      recorder.listen((change) => this.#add(change))
    }
  }

  #end(): void {
    for (const recorder of this.#options.recorders) recorder.listen(undefined)
    this.#changes = []
    this.#characters = 0
  }

  #add(change: RecordedChange): void {
    this.#changes.push({ number: ++this.#number, ...change })
    this.#characters += charactersOf(change)
    while (this.#changes.length > MOST_CHANGES || (this.#characters > MOST_CHARACTERS && this.#changes.length > 1)) {
      this.#characters -= charactersOf(this.#changes.shift()!)
    }
    this.#waiting.wakeAll()
  }

  #answer(after: number): ChangesAnswer {
    const changes = this.#changes.filter(({ number }) => number > after)
    const [first] = changes
    // A new process counts from 1 again: a client with a number of the old process has missed nothing.
    const missed = first === undefined || after === 0 || after > this.#number ? 0 : first.number - after - 1
    return { ...this.#options.about(), changes, last: this.#number, missed }
  }
}

function charactersOf({ commands }: Pick<SyncChange, 'commands'>): number {
  return commands.reduce((sum, { length }) => sum + length, 0)
}
