// Watches in protobuf (`application/vnd.kubernetes.protobuf;stream=watch`): each frame is four bytes of length, big-endian,
// and a WatchEvent without an envelope, whose object is in one.

import { Buffer } from 'node:buffer'
import type { Resource } from '../resource.ts'
import { ByteQueue } from './byte-queue.ts'
import { DecodeError } from './decode-error.ts'
import { LARGEST_OBJECT } from './largest-object.ts'
import { openEnvelope } from './protobuf-envelope.ts'
import { ProtoReader } from './proto-reader.ts'
import { statusFromProtobuf } from './status.ts'
import type { StringPool } from './string-pool.ts'
import { frameOf, malformed, type WatchFrame, type WatchParser } from './watch-parser.ts'

export class ProtobufWatchParser<T> implements WatchParser<T> {
  readonly #resource: Resource<T>
  readonly #reader: ProtoReader
  readonly #queue = new ByteQueue()

  constructor(resource: Resource<T>, pool: StringPool) {
    this.#resource = resource
    this.#reader = new ProtoReader(Buffer.allocUnsafe(0), pool)
  }

  get pendingBytes(): number {
    return this.#queue.length
  }

  push(chunk: Buffer, frames: WatchFrame<T>[]): void {
    const queue = this.#queue
    queue.append(chunk)
    while (queue.length >= 4) {
      const length = queue.bytes.readUInt32BE(queue.start)
      if (length > LARGEST_OBJECT) {
        frames.push(this.#malformed(`a frame of ${length} bytes was announced`))
        return
      }
      if (queue.length < 4 + length) return
      const start = queue.start + 4
      queue.consumeTo(start + length)
      const frame = this.#frame(queue.bytes, start, start + length)
      frames.push(frame)
      if (frame.type === 'malformed') return
    }
  }

  #frame(bytes: Buffer, start: number, end: number): WatchFrame<T> {
    const reader = this.#reader
    try {
      reader.reset(bytes, start, end)
      let type = ''
      let objectStart = end
      let objectEnd = end
      while (reader.pos < end) {
        switch (reader.field(end)) {
          case 1:
            type = reader.pooled()
            break
          case 2:
            // runtime.RawExtension { raw = 1 }
            for (const extensionEnd = reader.enter(); reader.pos < extensionEnd;) {
              if (reader.field(extensionEnd) !== 1) {
                reader.skip(extensionEnd)
                continue
              }
              objectEnd = reader.enter()
              objectStart = reader.pos
              reader.pos = objectEnd
            }
            break
          default:
            reader.skip(end)
        }
      }
      reader.reset(bytes, objectStart, objectEnd)
      return this.#event(type)
    } catch (error) {
      if (error instanceof DecodeError) return { type: 'malformed', error }
      throw error
    }
  }

  /** Reads the envelope and the object. */
  #event(type: string): WatchFrame<T> {
    const reader = this.#reader
    const kind = openEnvelope(reader)
    if (type === 'ERROR') return { type: 'error', status: statusFromProtobuf(reader, reader.limit) }
    if (kind !== this.#resource.kind) return this.#malformed(`the server sent a ${kind}`)
    return frameOf(this.#resource.name, type, this.#resource.fromProtobuf(reader, reader.limit))
  }

  #malformed(reason: string): WatchFrame<never> {
    return malformed(this.#resource.name, reason)
  }
}
