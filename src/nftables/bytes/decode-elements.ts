// Reading lists of elements, by hand for speed. A test compares it with the table in element.ts.

import { NFGENMSG_LENGTH } from '../../netlink/nfnetlink.ts'
import { type Bytes, asBytes } from '../../lib/ip.ts'
import type { Element, NftSet } from '../types.ts'
import { decodeBytes } from '../../netlink/attributes.ts'
import type { Message } from '../../netlink/message.ts'
import {
  NFTA_SET_ELEM_DATA,
  NFTA_SET_ELEM_EXPIRATION,
  NFTA_SET_ELEM_KEY,
  NFTA_SET_ELEM_KEY_END,
  NFTA_SET_ELEM_LIST_ELEMENTS,
} from './uapi.ts'
import { LITTLE_ENDIAN } from '../../lib/endian.ts'
import { align4 } from '../../netlink/writer.ts'
import {
  type ElementAttributes,
  elementAttributes,
  elementFromAttributes,
  elementsFromAttributes,
  storesPoints,
} from './element.ts'
import { fieldsLength, paddedLength } from './field-type.ts'

/** Collects the elements of one set from the messages of a dump. */
export class ElementReader {
  readonly #set: NftSet
  readonly #elements: Element[] = []
  readonly #remainingMs: number[] = []
  /** The points of ranges make sense only when all of them are known. */
  readonly #points: ElementAttributes[] = []
  readonly #readOne: (view: DataView, start: number, end: number) => void
  readonly #keyPadding: Bytes
  readonly #dataPadding: Bytes

  constructor(set: NftSet) {
    this.#set = set
    this.#keyPadding = asBytes('\0'.repeat(paddedLength(set.key) - fieldsLength(set.key)))
    const data = set.data === undefined || set.data === 'verdict' || set.data.length === 0 ? undefined : set.data
    this.#dataPadding = asBytes(data === undefined ? '' : '\0'.repeat(paddedLength(data) - fieldsLength(data)))
    if (storesPoints(set)) this.#readOne = this.#readPoint.bind(this)
    else this.#readOne = set.data === 'verdict' ? this.#readByTable.bind(this) : this.#readFast.bind(this)
  }

  add({ view, start, end }: Message): void {
    for (let at = start + NFGENMSG_LENGTH; at + 4 <= end;) {
      const length = view.getUint16(at, LITTLE_ENDIAN)
      const type = view.getUint16(at + 2, LITTLE_ENDIAN) & 0x3fff
      if (length < 4 || at + length > end) return
      if (type === NFTA_SET_ELEM_LIST_ELEMENTS) this.#readList(view, at + 4, at + length)
      at += align4(length)
    }
  }

  elements(): Element[] {
    return storesPoints(this.#set) ? elementsFromAttributes(this.#set, this.#points) : this.#elements
  }

  /** How long each of elements() is still remembered, in their order; Infinity: it does not expire. */
  get remainingMs(): readonly number[] {
    return this.#remainingMs
  }

  #readList(view: DataView, start: number, end: number): void {
    for (let at = start; at + 4 <= end;) {
      const length = view.getUint16(at, LITTLE_ENDIAN)
      if (length < 4 || at + length > end) return
      this.#readOne(view, at + 4, at + length)
      at += align4(length)
    }
  }

  #readPoint(view: DataView, start: number, end: number): void {
    const attributes = elementAttributes.read(view, start, end)
    if (attributes !== undefined) this.#points.push(attributes)
  }

  #readByTable(view: DataView, start: number, end: number): void {
    const attributes = elementAttributes.read(view, start, end)
    const element = attributes === undefined ? undefined : elementFromAttributes(this.#set, attributes)
    if (element !== undefined) this.#elements.push(element)
  }

  /** The attributes of interest hold a single one, NFTA_DATA_VALUE, whose header is passed over. */
  #readFast(view: DataView, start: number, end: number): void {
    let key: Bytes | undefined
    let keyEnd: Bytes | undefined
    let data: Bytes | undefined
    let remainingMs = Infinity
    for (let at = start; at + 4 <= end;) {
      const length = view.getUint16(at, LITTLE_ENDIAN)
      const type = view.getUint16(at + 2, LITTLE_ENDIAN) & 0x3fff
      if (length < 4 || at + length > end) return
      if (type === NFTA_SET_ELEM_KEY) key = asBytes(this.#decodeValue(view, at + 4) + this.#keyPadding)
      else if (type === NFTA_SET_ELEM_KEY_END) keyEnd = asBytes(this.#decodeValue(view, at + 4) + this.#keyPadding)
      else if (type === NFTA_SET_ELEM_DATA) data = asBytes(this.#decodeValue(view, at + 4) + this.#dataPadding)
      else if (type === NFTA_SET_ELEM_EXPIRATION) remainingMs = Number(view.getBigUint64(at + 4))
      at += align4(length)
    }
    if (key === undefined) return
    if (this.#set.interval) keyEnd ??= key
    this.#elements.push(makeElement(key, keyEnd, data))
    if (this.#set.dynamic) this.#remainingMs.push(remainingMs)
  }

  #decodeValue(view: DataView, at: number): Bytes {
    return decodeBytes(view, at + 4, at + view.getUint16(at, LITTLE_ENDIAN))
  }
}

function makeElement(key: Bytes, keyEnd: Bytes | undefined, data: Bytes | undefined): Element {
  if (keyEnd === undefined) return data === undefined ? { key } : { key, data }
  return data === undefined ? { key, keyEnd } : { key, keyEnd, data }
}
