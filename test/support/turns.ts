// The turns of the event loop that other work gets while something goes on.

export interface Turns<T> {
  readonly result: T
  readonly turns: number
  /** Between two of them. */
  readonly longestMs: number
}

export async function turnsDuring<T>(work: () => Promise<T>): Promise<Turns<T>> {
  let turns = 0
  let longestMs = 0
  let lastMs = performance.now()
  let isOver = false
  const turn = () => {
    const nowMs = performance.now()
    longestMs = Math.max(longestMs, nowMs - lastMs)
    lastMs = nowMs
    turns++
    if (!isOver) setImmediate(turn)
  }
  setImmediate(turn)
  const result = await work()
  isOver = true
  return { result, turns, longestMs }
}
