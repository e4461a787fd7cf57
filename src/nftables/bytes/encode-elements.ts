// Writing lists of elements: with read-elements.ts, the one part of the codec that is made by hand for speed, because a
// cluster is elements and little else. It writes the same bytes as the table in element.ts; a test compares them.

import { type Bytes, asBytes } from '../../lib/ip.ts'
import type { Element, FieldType, NftSet } from '../types.ts'
import { cstring } from '../../netlink/attributes.ts'
import {
  NFTA_DATA_VALUE,
  NFTA_LIST_ELEM,
  NFTA_SET_ELEM_DATA,
  NFTA_SET_ELEM_KEY,
  NFTA_SET_ELEM_KEY_END,
  NFTA_SET_ELEM_LIST_ELEMENTS,
  NFTA_SET_ELEM_LIST_SET,
  NFTA_SET_ELEM_LIST_TABLE,
} from './uapi.ts'
import { MAX_ATTRIBUTE, Writer } from '../../netlink/writer.ts'
import { elementAttributes, elementToAttributes, storesPoints } from './element.ts'
import { fieldsLength, paddedLength } from './field-type.ts'

interface ElementList {
  readonly table: string
  readonly set: NftSet
  readonly elements: readonly Element[]
  readonly action: 'add' | 'delete'
}

/**
 * Writes the attributes of one message with the elements from `first` on, as many as fit, and returns the index of the
 * first that did not. The length of the list is 16 bits wide, so many elements need many messages.
 */
export function writeElements(writer: Writer, list: ElementList, first: number): number {
  writer.begin(NFTA_SET_ELEM_LIST_TABLE)
  cstring.write(writer, list.table)
  writer.end()
  writer.begin(NFTA_SET_ELEM_LIST_SET)
  cstring.write(writer, list.set.name)
  writer.end()
  writer.beginNested(NFTA_SET_ELEM_LIST_ELEMENTS)
  const next = hasFixedLayout(list) ? writeFast(writer, list, first) : writeByTable(writer, list, first)
  writer.end()
  return next
}

/** Elements of the same length, each with key, perhaps end of key, perhaps value. */
function hasFixedLayout({ set, action }: ElementList): boolean {
  return !storesPoints(set) && (action === 'delete' || set.data !== 'verdict')
}

/** Exported for the test that compares it with writeFast. */
export function writeByTable(writer: Writer, { set, elements, action }: ElementList, first: number): number {
  const start = writer.length - 4
  for (let i = first; i < elements.length; i++) {
    const before = writer.length
    for (const attributes of elementToAttributes(set, elements[i]!, action)) {
      writer.beginNested(NFTA_LIST_ELEM)
      elementAttributes.write(writer, attributes)
      writer.end()
    }
    if (writer.length - start > MAX_ATTRIBUTE) {
      writer.length = before
      return i
    }
  }
  return elements.length
}

/** Exported for the test that compares it with writeByTable. */
export function writeFast(writer: Writer, { set, elements, action }: ElementList, first: number): number {
  const { template, key, keyEnd, data } = layoutOf(set, action)
  const size = template.length
  const last = Math.min(elements.length, first + Math.floor((MAX_ATTRIBUTE - 4) / size))
  let at = writer.reserve((last - first) * size)
  const { bytes } = writer
  repeat(bytes, template, { start: at, end: writer.length })
  for (let i = first; i < last; i++) {
    const element = elements[i]!
    copyField(bytes, at, key, element.key)
    if (keyEnd !== undefined) copyField(bytes, at, keyEnd, element.keyEnd ?? element.key)
    if (data !== undefined) copyField(bytes, at, data, element.data)
    at += size
  }
  return last
}

/** Fills the range with copies of the template, doubling what is there at each step. */
function repeat(bytes: Uint8Array, template: Uint8Array, { start, end }: { start: number; end: number }): void {
  if (start === end) return
  bytes.set(template, start)
  for (let filled = template.length; start + filled < end; filled *= 2) {
    bytes.copyWithin(start + filled, start, Math.min(start + filled, end - filled))
  }
}

/** How long a key or value is in the kernel, and in Element, where single fields are padded. */
interface Lengths {
  readonly length: number
  readonly padded: number
}

interface Slot extends Lengths {
  readonly set: string
  readonly name: string
  readonly offset: number
}

interface Layout {
  /** An element whose fields are all zero. */
  readonly template: Uint8Array
  readonly key: Slot
  readonly keyEnd: Slot | undefined
  readonly data: Slot | undefined
}

function copyField(bytes: Uint8Array, at: number, slot: Slot, value: Bytes | undefined): void {
  if (value === undefined || value.length !== slot.padded) {
    throw new TypeError(
      `Cannot write an element of ${slot.set}: its ${slot.name} has ${value?.length ?? 0} bytes, the set's has ${slot.padded}`,
    )
  }
  const start = at + slot.offset
  for (let i = 0; i < slot.length; i++) bytes[start + i] = value.charCodeAt(i)
}

function layoutOf(set: NftSet, action: 'add' | 'delete'): Layout {
  const writer = new Writer(256)
  const field = (type: number, name: string, lengths: Lengths): Slot => {
    writer.beginNested(type)
    writer.begin(NFTA_DATA_VALUE)
    const offset = writer.length
    writer.raw(asBytes('\0'.repeat(lengths.length)))
    writer.end()
    writer.end()
    return { set: set.name, name, offset, ...lengths }
  }
  const keyLengths = lengthsOf(set.key)
  writer.beginNested(NFTA_LIST_ELEM)
  const key = field(NFTA_SET_ELEM_KEY, 'key', keyLengths)
  const keyEnd = set.interval ? field(NFTA_SET_ELEM_KEY_END, 'keyEnd', keyLengths) : undefined
  const dataFields = action === 'add' && set.data !== 'verdict' ? set.data : undefined
  const data = dataFields === undefined ? undefined : field(NFTA_SET_ELEM_DATA, 'data', lengthsOf(dataFields))
  writer.end()
  return { template: writer.written().slice(), key, keyEnd, data }
}

function lengthsOf(fields: readonly FieldType[]): Lengths {
  return { length: fieldsLength(fields), padded: paddedLength(fields) }
}
