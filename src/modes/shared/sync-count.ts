// What a sync did, counted while it goes on.

import type { FrontendAddress } from '../../model/types.ts'
import type { SyncStats } from '../programmer.ts'

/** So many commands of a comparison are kept, each cut off at this length. */
const SAMPLE = 8
const LONGEST = 200

export class SyncCount implements SyncStats {
  transactions = 0
  operations = 0
  bytes = 0
  gone: readonly FrontendAddress[] = []
  readonly sample: string[] = []

  /** One transaction; none when it had no operations. */
  count(operations: number, bytes: number): void {
    if (operations === 0) return
    this.transactions++
    this.operations += operations
    this.bytes += bytes
  }

  /** For people: some of what was done. */
  note(commands: Iterable<string>): void {
    for (const command of commands) {
      if (this.sample.length >= SAMPLE) break
      this.sample.push(command.length > LONGEST ? `${command.slice(0, LONGEST)}...` : command)
    }
  }

  /** What another part of the same sync did. */
  add({ transactions, operations, bytes, sample = [] }: SyncStats): void {
    this.note(sample)
    this.transactions += transactions
    this.operations += operations
    this.bytes += bytes
  }
}
