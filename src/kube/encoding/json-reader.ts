// Reads values out of parsed JSON without trusting it: a field of the wrong type counts as absent.

import { isJsonObject, type JsonObject } from '../../lib/json.ts'
import type { StringPool } from './string-pool.ts'

const NOTHING: JsonObject = {}

export class JsonReader {
  readonly #pool: StringPool

  constructor(pool: StringPool) {
    this.#pool = pool
  }

  object(value: unknown): JsonObject {
    return isJsonObject(value) ? value : NOTHING
  }

  /** The objects of a list, without other values. */
  objects(value: unknown): readonly JsonObject[] {
    return Array.isArray(value) ? only(value, isJsonObject) : []
  }

  string(value: unknown): string {
    return typeof value === 'string' ? value : ''
  }

  strings(value: unknown): readonly string[] {
    return Array.isArray(value) ? only(value, isString) : []
  }

  /** A string that many objects have. */
  pooled(value: unknown): string {
    return typeof value === 'string' ? this.#pool.fromString(value) : ''
  }

  int(value: unknown): number {
    return typeof value === 'number' && Number.isSafeInteger(value) ? value : 0
  }

  listOf(element: string): readonly string[] {
    return this.#pool.listOf(element)
  }
}

function isString(value: unknown): value is string {
  return typeof value === 'string'
}

/** The list itself where nothing is wrong with it: each copy is memory, and there is one in every object. */
function only<T>(list: readonly unknown[], isWanted: (value: unknown) => value is T): readonly T[] {
  return list.every(isWanted) ? list : list.filter(isWanted)
}
