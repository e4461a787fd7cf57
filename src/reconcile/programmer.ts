// What the pipeline asks of a mode: make the kernel agree with what the model decided.

import type { FrontendAddress, NodeView, ServicePortChange, ServicePortName, ServicePortView } from '../model/types.ts'
import type { Metrics } from '../metrics/metrics.ts'

/**
 * Programs one IP family. When a call returns, or the promise that it returns is kept, the kernel has acknowledged. It
 * throws, or breaks the promise, otherwise.
 */
export interface Programmer {
  /** Programs what changed since the last call. */
  sync(node: NodeView, changes: readonly ServicePortChange[]): SyncStats | Promise<SyncStats>
  /** Reads back what the kernel has and programs the difference to all that there should be. Needed first, and after a failure. */
  syncAll(node: NodeView, views: Iterable<ServicePortView>): SyncStats | Promise<SyncStats>
  /**
   * Called after each sync: what need not be done for the rules to be right, such as forgetting what packets have noted. When it
   * fails the sync is done all the same, and it is called again: it knows what is left to do.
   */
  finish?(): FinishStats | void | Promise<FinishStats | void>
  /** From now on, syncs answer `commands`, or not: to put all of it into words takes time, and is for a reader who looks. */
  tellCommands?(isTold: boolean): void
  close(): void
}

/** What was written to the kernel, or deleted in it. */
export interface FinishStats {
  readonly transactions: number
  readonly operations: number
  readonly bytes: number
}

export interface SyncStats extends FinishStats {
  /**
   * UDP frontends that the kernel still served and no longer does, where a comparison found any: their services went while
   * no proxy watched, and their flows may go on.
   */
  readonly gone?: readonly FrontendAddress[]
  /** After a comparison: the first of the commands that led to what should be there, for people. */
  readonly sample?: readonly string[]
  /** The commands, in the words of the mode's own tool, up to a limit: while tellCommands() asks for them. */
  readonly commands?: readonly string[] | undefined
  /** How many service ports have no rules because the kernel refused them. A comparison tries them again. */
  readonly refused?: number
  /** Another process has taken over, and this one leaves rules and flows to it. */
  readonly isSucceeded?: true
}

/** Where a programmer tells what its answers do not say. */
export interface ProgrammerReports {
  readonly metrics: Metrics
  /** The kernel refuses the rules of a service port, which then has none. All others are programmed. */
  readonly onRefused: (service: ServicePortName, reason: string) => void
  /** Clients of endpoints that have gone could not be forgotten, by a programmer that tries again by itself; and they could. */
  readonly affinity: { readonly onFailed: (error: unknown, againInMs: number) => void; readonly onMended: () => void }
}
