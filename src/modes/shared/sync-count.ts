// What a sync did, counted while it goes on.

import type { FrontendAddress } from '../../model/types.ts'
import type { SyncStats } from '../programmer.ts'

export class SyncCount implements SyncStats {
  transactions = 0
  operations = 0
  bytes = 0
  gone: readonly FrontendAddress[] = []

  /** One transaction; none when it had no operations. */
  count(operations: number, bytes: number): void {
    if (operations === 0) return
    this.transactions++
    this.operations += operations
    this.bytes += bytes
  }

  /** What another part of the same sync did. */
  add({ transactions, operations, bytes }: SyncStats): void {
    this.transactions += transactions
    this.operations += operations
    this.bytes += bytes
  }
}
