// Records what one sync wrote: how much, and its first operations, which are formatted only when somebody reads them.

import type { FrontendAddress } from '../model/types.ts'
import type { Answerers, SyncStats, WriteStats } from './programmer.ts'

/** The most transactions whose operations are kept until the sync is reported: each may be large. */
const MOST_KEPT = 16

export class WriteLog implements SyncStats {
  transactions = 0
  operations = 0
  bytes = 0
  gone: readonly FrontendAddress[] = []
  answerers: Answerers | undefined
  readonly #kept: (() => Iterable<string>)[] = []

  /** Counts a transaction, unless it had no operations. */
  count(operations: number, bytes: number): void {
    if (operations === 0) return
    this.transactions++
    this.operations += operations
    this.bytes += bytes
  }

  /** Keeps a function that formats operations. */
  keep(format: () => Iterable<string>): void {
    if (this.#kept.length < MOST_KEPT) this.#kept.push(format)
  }

  /** Adds the record of another part of the same sync. */
  add({ transactions, operations, bytes, commands }: WriteStats & Pick<SyncStats, 'commands'>): void {
    if (commands !== undefined) this.keep(commands)
    this.transactions += transactions
    this.operations += operations
    this.bytes += bytes
  }

  readonly commands = (): Iterable<string> => this.#format();

  *#format(): Generator<string> {
    for (const format of this.#kept) yield* format()
  }
}

/** The first commands, each cut off at a length. */
export function firstOf(commands: Iterable<string>, most: number, longest: number): string[] {
  const first: string[] = []
  if (most === 0) return first
  for (const command of commands) {
    first.push(command.length > longest ? `${command.slice(0, longest)}...` : command)
    if (first.length === most) break
  }
  return first
}
