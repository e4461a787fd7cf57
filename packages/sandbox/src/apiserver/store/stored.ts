import { encodeMessage } from '../schema/protobuf-encode.ts'
import { messageNamed } from '../schema/schema.ts'
import type { Buffer } from 'node:buffer'
import type { ApiObject } from '../objects/meta.ts'
import { countValues, type JsonObject } from '../json.ts'

/**
 * One version of one object. It never changes, so its encodings are made once, when they are first asked for: ten
 * watchers and a hundred lists share them, for as long as it is the newest.
 */
export class Stored<T extends ApiObject = ApiObject> {
  readonly key: string
  readonly object: T
  readonly revision: number
  #body: string | undefined
  #values: number | undefined
  #protobuf: Buffer | undefined

  constructor(key: string, object: T, revision: number) {
    this.key = key
    this.object = object
    this.revision = revision
  }

  /** How many values there are in it: what it takes in memory is about that. */
  get values(): number {
    return (this.#values ??= countValues(this.object))
  }

  /** A version that is superseded is rarely asked for again. */
  forgetEncodings(): void {
    this.#body = undefined
    this.#protobuf = undefined
  }

  /** Its JSON without kind and apiVersion, which an item of a list does not repeat. */
  get body(): string {
    if (this.#body === undefined) {
      const { kind: _kind, apiVersion: _apiVersion, ...rest } = this.object
      this.#body = JSON.stringify(rest)
    }
    return this.#body
  }

  get json(): string {
    const { kind, apiVersion } = this.object
    return `{"kind":"${kind}","apiVersion":"${apiVersion}",${this.body.slice(1)}`
  }

  protobuf(message: string): Buffer {
    this.#protobuf ??= encodeMessage(messageNamed(message), this.object as unknown as JsonObject)
    return this.#protobuf
  }
}
