// The event that subscribers get after a write to the kernel.

import { mergeChanges } from '../model/merge-changes.ts'
import type { FrontendAddress, NodeView, ServicePortChange } from '../model/types.ts'
import type { Answerers, SyncStats } from './programmer.ts'
import type { Cause } from './queue.ts'

/** One attempt to bring the kernel up to date. */
export interface Attempt {
  readonly node: NodeView
  readonly cause: Cause
  /** Whether all rules are compared with the kernel's. */
  readonly isComparison: boolean
  /** Differences may be our own: there were changes or a failure before, or nothing is programmed yet. */
  readonly mayDiffer: boolean
  /** Exactly the changes since the last write that the kernel acknowledged. */
  readonly changes: readonly ServicePortChange[]
  readonly beganMs: number
  /** When the first event came that led to it. */
  readonly waitingSinceMs: number | undefined
  /** When those events were triggered, in the cluster. */
  readonly triggerTimes: readonly number[]
}

/** A write that the kernel has acknowledged. */
export interface Applied extends Attempt {
  readonly operations: SyncStats
  readonly tookMs: number
}

/** A write that failed. Its changes come again with the next attempt. */
export interface NotApplied extends Attempt {
  readonly error: unknown
}

/** Merges two writes, for a subscriber that failed at the first. */
export function mergeApplied(earlier: Applied, later: Applied): Applied {
  const { operations: first } = earlier
  const { operations: last } = later
  const gone: FrontendAddress[] = [...(first.gone ?? []), ...(last.gone ?? [])]
  return {
    ...later,
    isComparison: earlier.isComparison || later.isComparison,
    changes: mergeChanges(earlier.changes, later.changes),
    operations: { ...last, gone, answerers: mergeAnswerers(first.answerers, last.answerers) },
  }
}

function mergeAnswerers(a: Answerers | undefined, b: Answerers | undefined): Answerers | undefined {
  if (a === undefined || b === undefined) return a ?? b
  const merged = new Map(a)
  for (const [name, answerers] of b) merged.set(name, [...(merged.get(name) ?? []), ...answerers])
  return merged
}
