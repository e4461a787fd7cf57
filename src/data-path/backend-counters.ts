// Counts what goes to each backend while a client of the control socket looks at it. Each thread writes a part of the memory of
// its own; a reader adds them up.

/** A stream has no packets here: the process sees its bytes alone. */
export const BACKEND_COUNTERS = ['begun', 'sentPackets', 'sentBytes', 'receivedPackets', 'receivedBytes'] as const
export type BackendTotals = Readonly<Record<(typeof BACKEND_COUNTERS)[number], number>>

export const BEGUN = 0
export const SENT_PACKETS = 1
export const SENT_BYTES = 2
export const RECEIVED_PACKETS = 3
export const RECEIVED_BYTES = 4

/** An entry is the serial number of a backend and its counts. Each thread's part begins with the number of its entries. */
const ENTRY = 1 + BACKEND_COUNTERS.length

/** Room for `most` backends in each thread's part. */
export function createBackendCounters(threads: number, most: number): SharedArrayBuffer {
  return new SharedArrayBuffer(threads * (1 + most * ENTRY) * Float64Array.BYTES_PER_ELEMENT)
}

/** A thread's own part. It counts while it has memory. */
export class BackendCounters {
  readonly #thread: number
  readonly #threads: number
  #words: Float64Array | undefined
  /** The index of each backend's counts, by serial number. */
  readonly #places = new Map<number, number>()

  constructor(thread: number, threads: number) {
    this.#thread = thread
    this.#threads = threads
  }

  use(memory: SharedArrayBuffer | undefined): void {
    this.#words = memory && partOf(memory, this.#thread, this.#threads)
    this.#places.clear()
  }

  /** Does not count backends beyond the room. */
  add(serial: number, what: number, amount: number): void {
    if (this.#words === undefined) return
    const place = this.#places.get(serial) ?? this.#enter(this.#words, serial)
    if (place !== -1) this.#words[place + what]! += amount
  }

  #enter(words: Float64Array, serial: number): number {
    const at = 1 + words[0]! * ENTRY
    if (at + ENTRY > words.length) return -1
    words[at] = serial
    words[0]!++
    this.#places.set(serial, at + 1)
    return at + 1
  }
}

/** The totals of all threads, by serial number. */
export function readBackendTotals(memory: SharedArrayBuffer, threads: number): ReadonlyMap<number, BackendTotals> {
  const sums = new Map<number, number[]>()
  for (let thread = 0; thread < threads; thread++) {
    const words = partOf(memory, thread, threads)
    for (let entry = 0; entry < words[0]!; entry++) {
      const at = 1 + entry * ENTRY
      const sum = sums.get(words[at]!) ?? BACKEND_COUNTERS.map(() => 0)
      BACKEND_COUNTERS.forEach((_, what) => (sum[what]! += words[at + 1 + what]!))
      sums.set(words[at]!, sum)
    }
  }
  return new Map(
    Array.from(sums, ([serial, sum]) => [
      serial,
      Object.fromEntries(BACKEND_COUNTERS.map((name, what) => [name, sum[what]])) as BackendTotals,
    ]),
  )
}

function partOf(memory: SharedArrayBuffer, thread: number, threads: number): Float64Array {
  const length = memory.byteLength / threads
  return new Float64Array(memory, thread * length, length / Float64Array.BYTES_PER_ELEMENT)
}
