// What the pipeline needs from a mode: it makes the kernel hold what the model decided.

import type { FrontendAddress, NodeView, ServicePortChange, ServicePortName, ServicePortView } from '../model/types.ts'
import type { Metrics } from '../metrics/metrics.ts'

/**
 * Programs one IP family. When a promise resolves, the kernel has acknowledged. The queue of the family calls one method at a time,
 * and the next when the promise of the last is settled.
 */
export interface Programmer {
  /** Programs what changed since the last call. */
  sync(node: NodeView, changes: readonly ServicePortChange[]): Promise<SyncStats>
  /** Reads back what the kernel has and writes the difference. Called first, and after a failure. */
  syncAll(node: NodeView, views: Iterable<ServicePortView>): Promise<SyncStats>
  /**
   * Cleans up after a sync: deletes stale affinity entries, for example. Called after each sync and when its result asks for it. If it
   * fails, the sync still counts, and it is called again for the rest.
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
  /** Affinity entries were deleted that led clients to a backend that is gone. Their flows may still go there. */
  readonly hadStaleEntries?: boolean
  /** The programmer no longer knows what the kernel holds: the next sync has to compare all. */
  readonly isUnsure?: true
}

export interface SyncStats extends WriteStats {
  /** The first of the operations as commands of the mode's own tool, formatted while they are read. */
  readonly commands?: (() => Iterable<string>) | undefined
  /**
   * UDP frontends that a comparison found in the kernel and removed: their services went away while no proxy ran, and their flows may
   * still exist.
   */
  readonly gone?: readonly FrontendAddress[]
  /** The sockets that answered UDP flows of the changed service ports until now, in a mode where endpoints do not. */
  readonly answerers?: Answerers | undefined
  /** How many service ports have no rules because the kernel refused them. A comparison tries them again. */
  readonly refused?: number
  /** Another process has taken over, and this one leaves rules and flows to it. */
  readonly isSucceeded?: true
}

/** `ip:port` of the sockets that answer the flows of service ports. */
export type Answerers = ReadonlyMap<ServicePortName, readonly string[]>

/** Events that a programmer reports besides its results. */
export interface ProgrammerReports {
  readonly metrics: Metrics
  /** The kernel refuses the rules of a service port, which then has none. All others are programmed. */
  readonly onRefused: (service: ServicePortName, reason: string) => void
  /** Called when stale affinity entries could not be deleted, before the programmer tries again, and when they could after that. */
  readonly affinity: AffinityReports
}

export interface AffinityReports {
  readonly onFailed: (error: unknown, againInMs: number) => void
  readonly onMended: () => void
}
