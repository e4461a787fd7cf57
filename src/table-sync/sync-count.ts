// What a sync did, counted while it goes on.

import type { FrontendAddress } from '../model/types.ts'
import type { SyncStats } from '../reconcile/programmer.ts'

/** So many commands of a comparison are kept, each cut off at this length. */
const SAMPLE = 8
const LONGEST = 200
/** The same for a reader who looks. */
const MOST_COMMANDS = 120
const LONGEST_COMMAND = 400

export class SyncCount implements SyncStats {
  transactions = 0
  operations = 0
  bytes = 0
  gone: readonly FrontendAddress[] = []
  readonly sample: string[] = []
  readonly commands: string[] | undefined

  constructor(isTold: boolean = false) {
    this.commands = isTold ? [] : undefined
  }

  /** One transaction; none when it had no operations. */
  count(operations: number, bytes: number): void {
    if (operations === 0) return
    this.transactions++
    this.operations += operations
    this.bytes += bytes
  }

  /** For people: some of what was done, or all of it for a reader who looks. */
  note(commands: Iterable<string>): void {
    for (const command of commands) {
      if (this.sample.length < SAMPLE) this.sample.push(cut(command, LONGEST))
      else if (this.#isFull) break
      if (!this.#isFull) this.commands?.push(cut(command, LONGEST_COMMAND))
    }
  }

  /** Some of it for the log and the drift alone. */
  keepSample(commands: Iterable<string>): void {
    for (const command of commands) {
      if (this.sample.length >= SAMPLE) break
      this.sample.push(cut(command, LONGEST))
    }
  }

  /** All of it, for a reader who looks, and only while there is one. */
  tell(commands: () => Iterable<string>): void {
    if (this.commands === undefined) return
    for (const command of commands()) {
      if (this.#isFull) break
      this.commands.push(cut(command, LONGEST_COMMAND))
    }
  }

  /** What another part of the same sync did. */
  add({ transactions, operations, bytes, sample = [], commands }: SyncStats): void {
    this.keepSample(sample)
    this.tell(() => commands ?? [])
    this.transactions += transactions
    this.operations += operations
    this.bytes += bytes
  }

  get #isFull(): boolean {
    return this.commands === undefined || this.commands.length >= MOST_COMMANDS
  }
}

function cut(command: string, longest: number): string {
  return command.length > longest ? `${command.slice(0, longest)}...` : command
}
