import { applyPatch } from './patch.ts'
import type { Snapshot, SnapshotUpdate } from './protocol.ts'

/** The snapshot that a page has after an update. What did not change is the same object. */
export function updateSnapshot(before: Snapshot, { nowMs, patch }: SnapshotUpdate): Snapshot {
  return { ...(applyPatch(before, patch) as Snapshot), nowMs }
}
