// In which order backends take turns.

import { apportion } from '../lib/apportion.ts'

/** Indexes of backends, each as often as it weighs, and spread evenly: clients often come several at a time. */
export function turnsOf(weights: readonly number[]): number[] {
  const turns = apportion(weights).flatMap((count, index) =>
    Array.from({ length: count }, (_, i) => ({ index, at: (i + 0.5) / count })),
  )
  return turns.sort((a, b) => a.at - b.at || a.index - b.index).map(({ index }) => index)
}
