import type { ServicePortChange, ServicePortName } from './types.ts'

/** Two sets of changes as one: from what was before the earlier to what is after the later. */
export function mergeChanges(
  earlier: readonly ServicePortChange[],
  later: readonly ServicePortChange[],
): readonly ServicePortChange[] {
  if (earlier.length === 0) return later
  const merged = new Map<ServicePortName, ServicePortChange>(earlier.map((change) => [change.name, change]))
  for (const { name, before, after } of later) {
    const known = merged.get(name)
    const from = known === undefined ? before : known.before
    if (from === after) merged.delete(name)
    else merged.set(name, { name, before: from, after })
  }
  return [...merged.values()]
}
