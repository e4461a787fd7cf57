// Watches in JSON: one {"type": "...", "object": {...}} per line.

import type { Buffer } from 'node:buffer'
import { messageOf } from '../../lib/errors.ts'
import type { Resource } from '../resource.ts'
import { ByteQueue } from './byte-queue.ts'
import { isJsonObject } from '../../lib/json.ts'
import { JsonReader } from './json-reader.ts'
import { LARGEST_OBJECT } from './largest-object.ts'
import { statusFromJson } from './status.ts'
import type { StringPool } from './string-pool.ts'
import { frameOf, malformed, type WatchFrame, type WatchParser } from './watch-parser.ts'

const NEWLINE = 0x0a

export class JsonWatchParser<T> implements WatchParser<T> {
  readonly #resource: Resource<T>
  readonly #reader: JsonReader
  readonly #queue = new ByteQueue()

  constructor(resource: Resource<T>, pool: StringPool) {
    this.#resource = resource
    this.#reader = new JsonReader(pool)
  }

  get pendingBytes(): number {
    return this.#queue.length
  }

  push(chunk: Buffer, frames: WatchFrame<T>[]): void {
    const queue = this.#queue
    // A line that was incomplete before has no newline before this chunk.
    let searchFrom = queue.length
    queue.append(chunk)
    for (;;) {
      const newline = queue.indexOf(NEWLINE, searchFrom)
      if (newline < 0) break
      const line = queue.bytes.toString('utf8', queue.start, newline)
      queue.consumeTo(newline + 1)
      searchFrom = 0
      if (line.trim() === '') continue
      const frame = this.#frame(line)
      frames.push(frame)
      if (frame.type === 'malformed') return
    }
    if (queue.length > LARGEST_OBJECT) frames.push(this.#malformed(`a line is longer than ${LARGEST_OBJECT} bytes`))
  }

  #frame(line: string): WatchFrame<T> {
    let event: unknown
    try {
      event = JSON.parse(line)
    } catch (error) {
      return this.#malformed(messageOf(error))
    }
    if (!isJsonObject(event) || !isJsonObject(event['object'])) return this.#malformed('an event has no object')
    const object = event['object']
    const type = event['type']
    if (type === 'ERROR') return { type: 'error', status: statusFromJson(object) }
    if (object['kind'] !== undefined && object['kind'] !== this.#resource.kind) {
      return this.#malformed(`the server sent a ${JSON.stringify(object['kind'])}`)
    }
    return frameOf(this.#resource.name, type, this.#resource.fromJson(object, this.#reader))
  }

  #malformed(reason: string): WatchFrame<never> {
    return malformed(this.#resource.name, reason)
  }
}
