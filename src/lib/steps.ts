// Work that is done in steps, so that other work can have its turn in between.

import { nextTurn } from './next-turn.ts'

/** Pauses at each `yield`. Nothing that it uses may be used by others until it has ended. */
export type Steps<T> = Generator<void, T>

export function atOnce<T>(steps: Steps<T>): T {
  for (;;) {
    const { done, value } = steps.next()
    if (done === true) return value
  }
}

/** One step in each turn of the event loop, the first of them now. */
export async function inTurns<T>(steps: Steps<T>): Promise<T> {
  for (;;) {
    const { done, value } = steps.next()
    if (done === true) return value
    await nextTurn()
  }
}
