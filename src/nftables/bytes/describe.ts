// What an operation was about, as text, for the error of a transaction that failed.

import { NFGENMSG_LENGTH } from '../../netlink/nfnetlink.ts'
import { formatFields } from '../fields.ts'
import type { Element, NftSet, Op } from '../types.ts'
import { messagesOf } from '../../netlink/message.ts'
import { LITTLE_ENDIAN } from '../../lib/endian.ts'
import { align4 } from '../../netlink/writer.ts'
import { elementAttributes, elementsFromAttributes } from './element.ts'

/**
 * The operation as text. `message` is the one that failed and `offset` is where in it the kernel found fault, if it said so:
 * with them, an element can be named.
 */
export function describeOp(op: Op, message?: Uint8Array, offset?: number): string {
  switch (op.op) {
    case 'addTable':
      return 'add table'
    case 'deleteTable':
      return 'delete table'
    case 'addSet':
      return `add ${kindOf(op.set)} ${op.set.name}`
    case 'deleteSet':
      return `delete set ${op.name}`
    case 'addChain':
      return `add chain ${op.chain.name}`
    case 'deleteChain':
      return `delete chain ${op.name}`
    case 'flushChain':
      return `flush chain ${op.name}`
    case 'addRule':
      return `add rule "${op.rule.text}" to chain ${op.chain}`
    case 'addElements':
      return `add ${describeElements(op, message, offset)} to ${kindOf(op.set)} ${op.set.name}`
    case 'deleteElements':
    case 'destroyElements':
      return `delete ${describeElements(op, message, offset)} from ${kindOf(op.set)} ${op.set.name}`
  }
}

function kindOf(set: NftSet): 'map' | 'set' {
  return set.data === undefined ? 'set' : 'map'
}

function describeElements(
  { set, elements }: { readonly set: NftSet; readonly elements: readonly Element[] },
  message: Uint8Array | undefined,
  offset: number | undefined,
): string {
  if (elements.length === 1) return `element ${formatKey(set, elements[0]!)}`
  const key = message === undefined || offset === undefined ? undefined : keyAt(set, message, offset)
  return key === undefined ? `${elements.length} elements` : `element ${key}`
}

/** The key of the element whose attributes hold this offset of the message. */
function keyAt(set: NftSet, datagram: Uint8Array, offset: number): string | undefined {
  for (const { view, start, end } of messagesOf(datagram)) {
    let elements = { start: start + NFGENMSG_LENGTH, end }
    // Down from the message's attributes to the list's, which are the elements.
    for (let depth = 0; depth < 2; depth++) {
      const inner = attributeAt(view, elements, offset)
      if (inner === undefined) return undefined
      elements = inner
    }
    const wire = elementAttributes.read(view, elements.start, elements.end)
    const element = wire === undefined ? undefined : elementsFromAttributes(set, [{ ...wire, flags: 0 }])[0]
    return element === undefined ? undefined : formatKey(set, element)
  }
  return undefined
}

interface Span {
  readonly start: number
  readonly end: number
}

function attributeAt(view: DataView, { start, end }: Span, offset: number): Span | undefined {
  for (let at = start; at + 4 <= end;) {
    const length = view.getUint16(at, LITTLE_ENDIAN)
    if (length < 4) return undefined
    if (offset >= at && offset < at + length) return { start: at + 4, end: at + length }
    at += align4(length)
  }
  return undefined
}

/** As nft prints it: `10.0.0.1 . tcp . 80`. A range is given by its first key and its last. */
function formatKey(set: NftSet, { key, keyEnd }: Element): string {
  const first = formatFields(set.key, key)
  return keyEnd === undefined || keyEnd === key ? first : `${first} - ${formatFields(set.key, keyEnd)}`
}
