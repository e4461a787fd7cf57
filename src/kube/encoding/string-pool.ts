// Node names, namespaces and port names repeat a hundred thousand times in a large cluster. A lookup by their bytes keeps one
// string of each, and creates none for the repetitions.

import type { Buffer } from 'node:buffer'

/** A cluster of 5,000 nodes fills about a third of these. */
const DEFAULT_SLOTS = 16_384

/** How many neighbouring slots are tried. */
const WAYS = 4

/** Longer strings repeat too rarely to be worth hashing. */
const MAX_LENGTH = 64

export class StringPool {
  readonly #slots: (string | undefined)[] = []
  readonly #mask: number
  readonly #lists = new Map<string, readonly string[]>()

  /** `slots` must be a power of two. */
  constructor(slots: number = DEFAULT_SLOTS) {
    this.#slots.length = slots
    this.#mask = slots - 1
  }

  /** The string of these bytes (UTF-8): the same one for the same bytes, as long as the table has room for it. */
  fromBytes(bytes: Buffer, start: number, end: number): string {
    const length = end - start
    if (length === 0) return ''
    if (length > MAX_LENGTH) return bytes.toString('utf8', start, end)
    let hash = length
    for (let i = start; i < end; i++) {
      const byte = bytes[i]!
      if (byte > 0x7f) return bytes.toString('utf8', start, end)
      hash = (Math.imul(hash, 31) + byte) | 0
    }
    const home = homeSlot(hash) & this.#mask
    let free = home
    for (let way = 0; way < WAYS; way++) {
      const known = this.#slots[home ^ way]
      if (known === undefined) {
        free = home ^ way
        break
      }
      if (known.length === length && isSame(known, bytes, start)) return known
    }
    // The table never grows: a new string replaces one, and frequent strings come back by themselves.
    return (this.#slots[free] = bytes.toString('latin1', start, end))
  }

  /** The same for a string that exists already. */
  fromString(text: string): string {
    if (text.length === 0 || text.length > MAX_LENGTH) return text
    let hash = text.length
    for (let i = 0; i < text.length; i++) hash = (Math.imul(hash, 31) + text.charCodeAt(i)) | 0
    const home = homeSlot(hash) & this.#mask
    let free = home
    for (let way = 0; way < WAYS; way++) {
      const known = this.#slots[home ^ way]
      if (known === text) return known
      if (known === undefined) {
        free = home ^ way
        break
      }
    }
    return (this.#slots[free] = text)
  }

  /** One shared list for the same single element: the usual form of topology hints. */
  listOf(element: string): readonly string[] {
    let list = this.#lists.get(element)
    if (list === undefined) {
      if (this.#lists.size > this.#mask) this.#lists.clear()
      list = [element]
      this.#lists.set(element, list)
    }
    return list
  }
}

function homeSlot(hash: number): number {
  return hash ^ (hash >>> 15)
}

function isSame(text: string, bytes: Buffer, start: number): boolean {
  for (let i = 0; i < text.length; i++) {
    if (text.charCodeAt(i) !== bytes[start + i]) return false
  }
  return true
}
