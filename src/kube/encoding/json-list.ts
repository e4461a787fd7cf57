// Lists in JSON: {"kind": "...List", "metadata": {...}, "items": [{...}, ...]}, read while they arrive. The elements of
// `items` are parsed one by one; the rest, the skeleton, at the end.

import type { Decoded, Resource } from '../resource.ts'
import { messageOf } from '../../lib/errors.ts'
import type { Buffer } from 'node:buffer'
import { ByteQueue } from './byte-queue.ts'
import { DecodeError } from './decode-error.ts'
import { isJsonObject } from '../../lib/json.ts'
import { JsonReader } from './json-reader.ts'
import { LARGEST_OBJECT } from './largest-object.ts'
import { listMetaFrom, type ListMeta, type ListParser } from './list-parser.ts'
import type { StringPool } from './string-pool.ts'

const QUOTE = 0x22
const BACKSLASH = 0x5c
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d

/** The position in the text: outside `items`, between two of them, or inside one. */
type ListPart = 'skeleton' | 'items' | 'item'

export class JsonListParser<T> implements ListParser<T> {
  readonly #resource: Resource<T>
  readonly #reader: JsonReader
  readonly #queue = new ByteQueue()
  #part: ListPart = 'skeleton'
  #skeleton = ''
  /** How far behind queue.start the text has been scanned. */
  #scanned = 0
  #depth = 0
  #inString = false
  /** Where the last string of the skeleton began, behind queue.start. */
  #stringStart = 0
  #lastString = ''

  constructor(resource: Resource<T>, pool: StringPool) {
    this.#resource = resource
    this.#reader = new JsonReader(pool)
  }

  push(chunk: Buffer, objects: Decoded<T>[]): void {
    const queue = this.#queue
    queue.append(chunk)
    while (queue.start + this.#scanned < queue.end) {
      if (this.#part === 'skeleton') this.#scanSkeleton()
      else if (this.#part === 'items') this.#scanBetweenItems()
      else this.#scanItem(objects)
    }
    if (queue.length > LARGEST_OBJECT) throw this.#error(`a part of it is longer than ${LARGEST_OBJECT} bytes`)
  }

  finish(): ListMeta {
    const { bytes, start, end } = this.#queue
    const text = this.#skeleton + bytes.toString('utf8', start, end)
    if (this.#part !== 'skeleton') throw this.#error('it ends early')
    const list = this.#parse(text)
    const kind = list['kind']
    if (kind !== undefined && kind !== `${this.#resource.kind}List` && kind !== 'List') {
      throw this.#error(`the server sent a ${JSON.stringify(kind)}`)
    }
    return listMetaFrom(this.#reader.object(list['metadata']), this.#reader)
  }

  /** Scans up to the opening bracket of `items`, or to the end of what is there. */
  #scanSkeleton(): void {
    const { bytes, start, end } = this.#queue
    let i = start + this.#scanned
    for (; i < end; i++) {
      const byte = bytes[i]!
      if (this.#inString) {
        if (byte === BACKSLASH) i++
        else if (byte === QUOTE) {
          this.#inString = false
          if (this.#depth === 1) this.#lastString = bytes.toString('utf8', start + this.#stringStart, i)
        }
      } else if (byte === QUOTE) {
        this.#inString = true
        this.#stringStart = i + 1 - start
      } else if (byte === OPEN_BRACKET && this.#depth === 1 && this.#lastString === 'items') {
        this.#skeleton += bytes.toString('utf8', start, i + 1)
        this.#part = 'items'
        this.#consumeTo(i + 1)
        return
      } else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) this.#depth++
      else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) this.#depth--
    }
    this.#scanned = i - start
  }

  #scanBetweenItems(): void {
    const { bytes, start, end } = this.#queue
    for (let i = start; i < end; i++) {
      const byte = bytes[i]!
      if (byte === OPEN_BRACE) {
        this.#part = 'item'
        this.#depth = 0
        return this.#consumeTo(i)
      }
      if (byte === CLOSE_BRACKET) {
        this.#part = 'skeleton'
        this.#depth = 1
        this.#lastString = ''
        return this.#consumeTo(i)
      }
      // A comma or white space.
      if (byte > 0x20 && byte !== 0x2c) throw this.#error('an item is not an object')
    }
    this.#consumeTo(end)
  }

  #scanItem(objects: Decoded<T>[]): void {
    const { bytes, start, end } = this.#queue
    let depth = this.#depth
    let inString = this.#inString
    let i = start + this.#scanned
    for (; i < end; i++) {
      const byte = bytes[i]!
      if (inString) {
        if (byte === BACKSLASH) i++
        else if (byte === QUOTE) inString = false
      } else if (byte === QUOTE) inString = true
      else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) depth++
      else if ((byte === CLOSE_BRACE || byte === CLOSE_BRACKET) && --depth === 0) {
        const item = this.#parse(bytes.toString('utf8', start, i + 1))
        objects.push(this.#resource.fromJson(item, this.#reader))
        this.#part = 'items'
        return this.#consumeTo(i + 1)
      }
    }
    this.#depth = depth
    this.#inString = inString
    this.#scanned = i - start
  }

  #consumeTo(position: number): void {
    this.#queue.consumeTo(position)
    this.#scanned = 0
    this.#inString = false
  }

  #parse(text: string): Readonly<Record<string, unknown>> {
    let value: unknown
    try {
      value = JSON.parse(text)
    } catch (error) {
      throw this.#error(messageOf(error))
    }
    if (!isJsonObject(value)) throw this.#error('not an object')
    return value
  }

  #error(reason: string): DecodeError {
    return new DecodeError(`Cannot decode list of ${this.#resource.name}: ${reason}`)
  }
}
