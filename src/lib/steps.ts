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

/** One step in each turn of the event loop. What has no pause is done when this returns. */
export function inTurns<T>(steps: Steps<T>): T | Promise<T> {
  const { done, value } = steps.next()
  return done === true ? value : rest(steps)
}

async function rest<T>(steps: Steps<T>): Promise<T> {
  for (;;) {
    await nextTurn()
    const { done, value } = steps.next()
    if (done === true) return value
  }
}
