// A set of the kernel whose elements count, followed from reading to reading.
//
// The kernel lists a set piece by piece, and finds its place again by counting: when elements come or go meanwhile, it may leave
// one out. Such an element is not forgotten. The kernel forgets those that had no packet for a while, and no other.

import type { Bytes } from '../lib/ip.ts'
import { inPieces } from '../lib/in-pieces.ts'
import type { CountedElement } from '../nftables/bytes/counted-element.ts'

/** What an element has counted. One object for as long as the kernel has the element. */
export interface Count {
  packets: number
  bytes: number
}

interface Followed extends Count {
  /** Its last packet came no earlier than this. */
  livedMs: number
  /** The number of the last reading in which it was. */
  seen: number
}

/** A part of a list, decoded when it is asked for. */
type ListedPart = () => Iterable<CountedElement>

/** Parts that are decoded before other work gets a turn: some hundred elements each. */
const PARTS = 4

export class CounterSet {
  readonly #idleMs: number
  readonly #counts = new Map<Bytes, Followed>()
  #readings = 0
  #lastMs = -Infinity

  /** The kernel forgets an element that had no packet for `idleMs`. */
  constructor(idleMs: number) {
    this.#idleMs = idleMs
  }

  get counts(): ReadonlyMap<Bytes, Readonly<Count>> {
    return this.#counts
  }

  /** `nowMs` is when the list was begun. */
  async follow(parts: Iterable<ListedPart>, nowMs: number): Promise<void> {
    const reading = ++this.#readings
    await inPieces(parts, PARTS, (part) => {
      for (const element of part()) this.#note(element, reading, nowMs)
    })
    for (const [key, { seen, livedMs }] of this.#counts) {
      if (seen !== reading && nowMs - livedMs >= this.#idleMs) this.#counts.delete(key)
    }
    this.#lastMs = nowMs
  }

  #note({ key, packets, bytes }: CountedElement, reading: number, nowMs: number): void {
    const count = this.#counts.get(key)
    if (count === undefined) {
      this.#counts.set(key, { packets, bytes, seen: reading, livedMs: Math.max(this.#lastMs, nowMs - this.#idleMs) })
      return
    }
    if (count.packets !== packets) count.livedMs = this.#lastMs
    count.packets = packets
    count.bytes = bytes
    count.seen = reading
  }
}
