import { NFGENMSG_LENGTH } from '../../netlink/nfnetlink.ts'
import { asBytes } from '../../lib/ip.ts'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { arbitraryElement, arbitrarySet } from '../../../test/support/arbitrary-nftables.ts'
import type { Element, NftSet } from '../types.ts'
import { messagesOf } from '../../netlink/message.ts'
import { Writer } from '../../netlink/writer.ts'
import { elementListAttributes, elementsFromAttributes, storesPoints } from './element.ts'
import { beginNftablesMessage } from './messages.ts'
import { ElementReader } from './decode-elements.ts'
import { writeElements } from './encode-elements.ts'
import { runs } from '../../../test/support/runs.ts'
import { makeSet } from '../make-set.ts'

function messageWith(set: NftSet, elements: readonly Element[]): Uint8Array {
  const writer = new Writer()
  beginNftablesMessage(writer, 'newElements', 'ip')
  writeElements(writer, { table: 't', set, elements, action: 'add' }, 0)
  writer.endMessage()
  return writer.written()
}

describe('ElementReader', () => {
  it('reads by hand what the table reads', () => {
    const sets = arbitrarySet
      .filter((set) => !storesPoints(set))
      .chain((set) => fc.tuple(fc.constant(set), fc.array(arbitraryElement(set), { maxLength: 20 })))
    fc.assert(
      fc.property(sets, ([set, elements]) => {
        const reader = new ElementReader(set)
        for (const message of messagesOf(messageWith(set, elements))) {
          reader.add(message)
          const table = elementListAttributes.read(message.view, message.start + NFGENMSG_LENGTH, message.end)!
          expect(reader.elements()).toEqual(elementsFromAttributes(set, table.elements ?? []))
        }
        expect(reader.elements()).toEqual(elements)
      }),
    )
  })

  it('puts the points of ranges together from several messages', () => {
    const ports = makeSet('ports', ['inet_service'], { interval: true })
    const ranges = [
      { key: asBytes('\0\x10\0\0'), keyEnd: asBytes('\0\x20\0\0') },
      { key: asBytes('\0\x30\0\0'), keyEnd: asBytes('\xff\xff\0\0') },
    ]
    const reader = new ElementReader(ports)
    for (const range of ranges.toReversed())
      for (const message of messagesOf(messageWith(ports, [range]))) reader.add(message)
    expect(reader.elements()).toEqual(ranges)
  })

  it('never throws on bytes that are no elements', () => {
    fc.assert(
      fc.property(arbitrarySet, fc.uint8Array({ maxLength: 80 }), (set, noise) => {
        const view = new DataView(noise.slice().buffer)
        const reader = new ElementReader(set)
        const message = { type: 0, flags: 0, sequence: 0, port: 0, view, start: 0, end: view.byteLength }
        reader.add(message)
        expect(reader.elements().length).toBeLessThan(20)
      }),
      runs(2000),
    )
  })
})
