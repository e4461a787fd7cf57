// In which order several take turns.

import { apportion } from './apportion.ts'

/** Indexes, each as often as it weighs, and spread evenly. */
export function turnsOf(weights: readonly number[]): number[] {
  const turns = apportion(weights).flatMap((count, index) =>
    Array.from({ length: count }, (_, i) => ({ index, at: (i + 0.5) / count })),
  )
  return turns.sort((a, b) => a.at - b.at || a.index - b.index).map(({ index }) => index)
}
