// Chance that can be repeated: the same seed makes the same choices.

export class Random {
  #state: number

  constructor(seed: number) {
    this.#state = seed >>> 0
  }

  /** From 0 to 1, without 1 (mulberry32). */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let t = this.#state
    t = Math.imul(t ^ (t >>> 15), t | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }

  /** A whole number from `low` to `high`, both included. */
  between(low: number, high: number): number {
    return low + Math.floor(this.next() * (high - low + 1))
  }

  pick<T>(from: readonly T[]): T {
    if (from.length === 0) throw new RangeError('Cannot pick from nothing')
    return from[Math.floor(this.next() * from.length)]!
  }

  /** In another order. */
  shuffle<T>(values: readonly T[]): T[] {
    const left = [...values]
    return values.map(() => left.splice(Math.floor(this.next() * left.length), 1)[0]!)
  }
}
