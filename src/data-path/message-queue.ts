// Each thread has a queue of small messages in shared memory, by which the others hand work to it.

const LOCK = 0
const HEAD = 1
const TAIL = 2
const MESSAGES_AT = 3

export const MESSAGE_WORDS = 8
const CAPACITY = 1024
/** A sender keeps its work rather than wait for long. */
const SPINS = 1000

export class MessageQueue {
  readonly #words: Int32Array

  constructor(memory: SharedArrayBuffer) {
    this.#words = new Int32Array(memory)
  }

  static createMemory(): SharedArrayBuffer {
    return new SharedArrayBuffer((MESSAGES_AT + CAPACITY * MESSAGE_WORDS) * Int32Array.BYTES_PER_ELEMENT)
  }

  /** False when the queue is full or in use. */
  send(record: readonly number[]): boolean {
    const words = this.#words
    for (let spins = 0; !this.#tryLock(); spins++) if (spins === SPINS) return false
    const tail = words[TAIL]!
    const hasRoom = ((tail - words[HEAD]!) | 0) < CAPACITY
    if (hasRoom) {
      words.set(record, placeOf(tail))
      words[TAIL] = (tail + 1) | 0
    }
    this.#unlock()
    return hasRoom
  }

  /** The oldest message; undefined when the queue is empty. */
  receive(): Int32Array | undefined {
    const words = this.#words
    while (!this.#tryLock());
    const head = words[HEAD]!
    const record = head === words[TAIL] ? undefined : words.slice(placeOf(head), placeOf(head) + MESSAGE_WORDS)
    if (record !== undefined) words[HEAD] = (head + 1) | 0
    this.#unlock()
    return record
  }

  #tryLock(): boolean {
    return Atomics.compareExchange(this.#words, LOCK, 0, 1) === 0
  }

  #unlock(): void {
    Atomics.store(this.#words, LOCK, 0)
  }
}

/** Numbers of records run over, places go round. */
function placeOf(number: number): number {
  return MESSAGES_AT + (number & (CAPACITY - 1)) * MESSAGE_WORDS
}
