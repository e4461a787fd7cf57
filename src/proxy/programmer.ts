// What the pipeline asks of a mode: make the kernel agree with what the model decided.

import type { NodeView, ServicePortChange, ServicePortView } from '../model/types.ts'

/** Programs one IP family. Calls are synchronous: when they return, the kernel has acknowledged. They throw otherwise. */
export interface Programmer {
  /** Programs what changed since the last call. */
  sync(node: NodeView, changes: readonly ServicePortChange[]): SyncStats
  /** Reads back what the kernel has and programs the difference to all that there should be. Needed first, and after a failure. */
  syncAll(node: NodeView, views: Iterable<ServicePortView>): SyncStats
  close(): void
}

export interface SyncStats {
  readonly transactions: number
  readonly operations: number
  readonly bytes: number
}
