// What all threads share about a pool of backends, in shared memory.
//
// The turn and the health of backends belong to all threads, which change them atomically. Counters belong to one thread each; a
// reader adds them up.

export const COUNTERS = [
  'connections',
  'active',
  'bytesToBackends',
  'bytesToClients',
  'retries',
  'failures',
  'unserved',
] as const

export type CounterName = (typeof COUNTERS)[number]
export type PoolTotals = Readonly<Record<CounterName, number>>

export const CONNECTIONS = 0
export const ACTIVE = 1
export const TO_BACKENDS = 2
export const TO_CLIENTS = 3
/** Connections that were tried with one more backend. */
export const RETRIES = 4
/** Attempts to reach a backend that failed. */
export const FAILURES = 5
/** Clients that were turned away because no backend could be reached. */
export const UNSERVED = 6

export function createCounters(threads: number): SharedArrayBuffer {
  return new SharedArrayBuffer(threads * COUNTERS.length * Float64Array.BYTES_PER_ELEMENT)
}

export function countersOf(memory: SharedArrayBuffer, thread: number): Float64Array {
  const bytes = COUNTERS.length * Float64Array.BYTES_PER_ELEMENT
  return new Float64Array(memory, thread * bytes, COUNTERS.length)
}

export function totalsOf(memory: SharedArrayBuffer): PoolTotals {
  const all = new Float64Array(memory)
  const sum = (index: number) =>
    all.reduce((total, value, at) => (at % COUNTERS.length === index ? total + value : total), 0)
  return Object.fromEntries(COUNTERS.map((name, index) => [name, sum(index)])) as Record<CounterName, number>
}

// Times are kept in hundredths of a second, which fit into 32 bits and may run over.
const TICK_MS = 10
const WORDS_PER_SLOT = 2

/** A backend rests so long after its first failure, and twice as long after each further one. */
const FIRST_REST_MS = 1000
const LONGEST_REST_MS = 60_000

export interface BackendHealth {
  /** In a row. */
  readonly failures: number
  /** 0: it may be tried. */
  readonly restsForMs: number
}

/** The turn, and the failures of the backend in each slot. */
export class HealthBoard {
  readonly memory: SharedArrayBuffer
  readonly #words: Int32Array

  constructor(memory: SharedArrayBuffer) {
    this.memory = memory
    this.#words = new Int32Array(memory)
  }

  static create(slots: number): HealthBoard {
    return new HealthBoard(new SharedArrayBuffer((1 + slots * WORDS_PER_SLOT) * Int32Array.BYTES_PER_ELEMENT))
  }

  get slots(): number {
    return (this.#words.length - 1) / WORDS_PER_SLOT
  }

  /** A copy with room for more. */
  grownTo(slots: number): HealthBoard {
    const grown = HealthBoard.create(slots)
    grown.#words.set(this.#words)
    return grown
  }

  /** The next number of a sequence that all threads share. */
  nextTurn(): number {
    return Atomics.add(this.#words, 0, 1) >>> 0
  }

  /** Whether a backend may be tried. After its rest it may be tried once, and rests again until that try succeeds. */
  mayTry(slot: number, nowMs: number): boolean {
    const failures = Atomics.load(this.#words, failuresAt(slot))
    if (failures === 0) return true
    const until = Atomics.load(this.#words, untilAt(slot))
    if (((until - ticks(nowMs)) | 0) > 0) return false
    // A little less than a whole rest: this try comes after the last failure, and counts if it fails.
    const next = (ticks(nowMs + restMs(failures)) - 1) | 0
    return Atomics.compareExchange(this.#words, untilAt(slot), until, next) === until
  }

  /** A try that began at `triedMs` failed. Of many that began before the first of them failed, only that one counts. */
  failed(slot: number, nowMs: number, triedMs: number = nowMs): void {
    const before = Atomics.load(this.#words, failuresAt(slot))
    const lastFailure = Atomics.load(this.#words, untilAt(slot)) - restMs(before) / TICK_MS
    if (before > 0 && ((ticks(triedMs) - lastFailure) | 0) <= 0) return
    const failures = Atomics.add(this.#words, failuresAt(slot), 1) + 1
    Atomics.store(this.#words, untilAt(slot), ticks(nowMs + restMs(failures)))
  }

  /** The backend answered, or another one has the slot now. */
  forgive(slot: number): void {
    if (Atomics.load(this.#words, failuresAt(slot)) !== 0) Atomics.store(this.#words, failuresAt(slot), 0)
  }

  health(slot: number, nowMs: number): BackendHealth {
    const failures = Atomics.load(this.#words, failuresAt(slot))
    const until = Atomics.load(this.#words, untilAt(slot))
    const restsForMs = failures === 0 ? 0 : Math.max(0, ((until - ticks(nowMs)) | 0) * TICK_MS)
    return { failures, restsForMs }
  }
}

function failuresAt(slot: number): number {
  return 1 + slot * WORDS_PER_SLOT
}

function untilAt(slot: number): number {
  return failuresAt(slot) + 1
}

function restMs(failures: number): number {
  return Math.min(LONGEST_REST_MS, FIRST_REST_MS * 2 ** Math.min(failures - 1, 16))
}

function ticks(ms: number): number {
  return Math.floor(ms / TICK_MS) | 0
}
