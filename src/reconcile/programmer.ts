// What the pipeline asks of a mode: make the kernel agree with what the model decided.

import type { FrontendAddress, NodeView, ServicePortChange, ServicePortName, ServicePortView } from '../model/types.ts'
import type { Metrics } from '../metrics/metrics.ts'

/**
 * Programs one IP family. When a promise is kept, the kernel has acknowledged. The queue of the family calls one method at a time,
 * and the next when the promise of the last is settled.
 */
export interface Programmer {
  /** Programs what changed since the last call. */
  sync(node: NodeView, changes: readonly ServicePortChange[]): Promise<SyncStats>
  /** Reads back what the kernel has and programs the difference to all that there should be. Needed first, and after a failure. */
  syncAll(node: NodeView, views: Iterable<ServicePortView>): Promise<SyncStats>
  /**
   * What the rules can do without, such as to delete stale affinity entries. Called after each sync and when there is more to do.
   * When it fails the sync is done all the same, and it is called again: it knows what is left.
   */
  finish?(): Promise<FinishStats | void>
  close(): void
}

/** What was written to the kernel, or deleted in it. */
export interface WriteStats {
  readonly transactions: number
  readonly operations: number
  readonly bytes: number
}

export interface FinishStats extends WriteStats {
  /** There is more to do after so many milliseconds. */
  readonly againInMs?: number | undefined
  /** What is in the kernel is not known any more: all is to be compared. */
  readonly isUnsure?: true
}

export interface SyncStats extends WriteStats {
  /** The first of the operations as commands of the mode's own tool, formatted while they are read. */
  readonly commands?: (() => Iterable<string>) | undefined
  /**
   * UDP frontends that the kernel still served and no longer does, where a comparison found any: their services went while
   * no proxy watched, and their flows may go on.
   */
  readonly gone?: readonly FrontendAddress[]
  /** What answered UDP flows of the changed service ports until now, in a mode in which those are not the endpoints. */
  readonly answerers?: Answerers | undefined
  /** How many service ports have no rules because the kernel refused them. A comparison tries them again. */
  readonly refused?: number
  /** Another process has taken over, and this one leaves rules and flows to it. */
  readonly isSucceeded?: true
}

/** `ip:port` of what answers the flows of service ports. */
export type Answerers = ReadonlyMap<ServicePortName, readonly string[]>

/** Where a programmer reports what its results do not say. */
export interface ProgrammerReports {
  readonly metrics: Metrics
  /** The kernel refuses the rules of a service port, which then has none. All others are programmed. */
  readonly onRefused: (service: ServicePortName, reason: string) => void
  /** Affinity entries of endpoints that have gone could not be deleted, by a programmer that tries again; and they could. */
  readonly affinity: AffinityReports
}

export interface AffinityReports {
  readonly onFailed: (error: unknown, againInMs: number) => void
  readonly onMended: () => void
}
