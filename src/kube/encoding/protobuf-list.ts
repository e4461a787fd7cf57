// Lists in protobuf: envelope { typeMeta, raw: List { metadata = 1, items = 2 ... } }, read while they arrive.

import { Buffer } from 'node:buffer'
import type { Decoded, Resource } from '../resource.ts'
import { ByteQueue } from './byte-queue.ts'
import { DecodeError } from './decode-error.ts'
import { LARGEST_OBJECT } from './largest-object.ts'
import { JsonReader } from './json-reader.ts'
import { listMetaFrom, type ListMeta, type ListParser } from './list-parser.ts'
import { field as fieldNamed, messageToJson, type Message } from './message-to-json.ts'
import { hasMagic, MAGIC_LENGTH, decodeKind } from './protobuf-envelope.ts'
import { ProtoReader } from './proto-reader.ts'
import type { StringPool } from './string-pool.ts'

/** The longest header of a field: a tag and a length. */
const MAX_HEADER = 15

type Phase = 'magic' | 'envelope' | 'list' | 'end'

export class ProtobufListParser<T> implements ListParser<T> {
  readonly #resource: Resource<T>
  readonly #queue = new ByteQueue()
  readonly #reader: ProtoReader
  #phase: Phase = 'magic'
  /** Bytes of the list message that have not been decoded. */
  #listLeft = 0
  #meta: ListMeta | undefined

  constructor(resource: Resource<T>, pool: StringPool) {
    this.#resource = resource
    this.#reader = new ProtoReader(Buffer.allocUnsafe(0), pool)
  }

  push(chunk: Buffer, objects: Decoded<T>[]): void {
    this.#queue.append(chunk)
    while (this.#step(objects));
  }

  finish(): ListMeta {
    if (this.#phase !== 'end' || this.#queue.length > 0 || this.#meta === undefined) {
      throw new DecodeError(`Cannot decode list of ${this.#resource.name}: it ends early`)
    }
    return this.#meta
  }

  /** Uses the next complete piece; false when more bytes are needed first. */
  #step(objects: Decoded<T>[]): boolean {
    const queue = this.#queue
    if (this.#phase === 'magic') {
      if (queue.length < MAGIC_LENGTH) return false
      if (!hasMagic(queue.bytes, queue.start, queue.end)) {
        throw new DecodeError(`Cannot decode list of ${this.#resource.name}: does not begin with "k8s" and a zero byte`)
      }
      queue.consumeTo(queue.start + MAGIC_LENGTH)
      this.#phase = 'envelope'
      return true
    }
    if (queue.length === 0) return false
    return this.#phase === 'list' ? this.#listField(objects) : this.#envelopeField()
  }

  #envelopeField(): boolean {
    const field = this.#nextField()
    if (field === undefined) return false
    const reader = this.#reader
    if (field === 2) {
      // `raw`, the list itself: its fields are decoded one by one as they arrive.
      reader.limit = Number.MAX_SAFE_INTEGER
      const end = reader.enter()
      this.#listLeft = end - reader.pos
      this.#phase = this.#listLeft > 0 ? 'list' : 'end'
      this.#meta ??= { resourceVersion: '', continueToken: '' }
      this.#queue.consumeTo(reader.pos)
      return true
    }
    const end = this.#wholeField()
    if (end === undefined) return false
    if (field === 1) this.#checkKind(decodeKind(reader))
    this.#queue.consumeTo(end)
    return true
  }

  #listField(objects: Decoded<T>[]): boolean {
    const start = this.#queue.start
    const field = this.#nextField()
    if (field === undefined) return false
    const end = this.#wholeField()
    if (end === undefined) return false
    this.#listLeft -= end - start
    if (this.#listLeft < 0) throw new DecodeError(`Cannot decode list of ${this.#resource.name}: item past its end`)
    const reader = this.#reader
    if (field === 1) {
      this.#meta = listMetaFrom(messageToJson(reader, reader.enter(), LIST_META), new JsonReader(reader.pool))
    } else if (field === 2) {
      objects.push(this.#resource.fromProtobuf(reader, reader.enter()))
    }
    this.#queue.consumeTo(end)
    if (this.#listLeft === 0) this.#phase = 'end'
    return true
  }

  /** The number of the next field, once its tag and length have arrived. Moves the reader behind the tag. */
  #nextField(): number | undefined {
    const { bytes, start, end } = this.#queue
    this.#reader.reset(bytes, start, end)
    if (end - start < MAX_HEADER && !hasWholeHeader(bytes, start, end)) return undefined
    return this.#reader.field(end)
  }

  /** The end of the field, once all of it has arrived. The reader does not move. */
  #wholeField(): number | undefined {
    const reader = this.#reader
    const { pos, limit } = reader
    reader.limit = Number.MAX_SAFE_INTEGER
    reader.skip(Number.MAX_SAFE_INTEGER)
    const end = reader.pos
    reader.pos = pos
    reader.limit = limit
    if (end - pos > LARGEST_OBJECT) {
      const announced = `${end - pos} bytes were announced, the most is ${LARGEST_OBJECT}`
      throw new DecodeError(`Cannot decode list of ${this.#resource.name}: ${announced}`)
    }
    return end > limit ? undefined : end
  }

  #checkKind(kind: string): void {
    if (kind === `${this.#resource.kind}List`) return
    throw new DecodeError(
      `Cannot decode list of ${this.#resource.name}: the server sent a ${kind || 'nameless object'}`,
    )
  }
}

/** Whether these bytes contain a complete tag and length (or integer). */
function hasWholeHeader(bytes: Buffer, start: number, end: number): boolean {
  let varints = 0
  for (let i = start; i < end; i++) {
    if (bytes[i]! < 0x80 && ++varints === 2) return true
  }
  return false
}

const LIST_META: Message = { 2: fieldNamed('resourceVersion', 'text'), 3: fieldNamed('continue', 'text') }
