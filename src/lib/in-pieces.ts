// Long work beside other work.

import { nextTurn } from './next-turn.ts'

/**
 * Does something with each of many, and lets other work in after so many of them. By count and not by time: what runs between
 * two turns is the same on every machine.
 */
export async function inPieces<T>(all: Iterable<T>, size: number, each: (one: T) => void): Promise<void> {
  let left = size
  for (const one of all) {
    each(one)
    left--
    if (left > 0) continue
    await nextTurn()
    left = size
  }
}
