import { asBytes } from '../../lib/ip.ts'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { arbitraryElement, arbitrarySet } from '../../../test/support/arbitrary-nftables.ts'
import type { Element, NftSet } from '../types.ts'
import { Writer } from '../../netlink/writer.ts'
import { elementListAttributes, storesPoints } from './element.ts'
import { writeByTable, writeElements, writeFast } from './encode-elements.ts'
import { makeSet } from '../make-set.ts'

const endpoints = makeSet('endpoints', ['ipv4_addr', 'inet_proto', 'inet_service', 'integer'], {
  data: ['ipv4_addr', 'inet_service'],
})

const action = fc.constantFrom('add' as const, 'delete' as const)

function withElements(set: NftSet): fc.Arbitrary<readonly [NftSet, Element[]]> {
  return fc.tuple(fc.constant(set), fc.array(arbitraryElement(set), { maxLength: 30 }))
}

function numbered(count: number): Element[] {
  const word = (n: number) => String.fromCharCode(n >> 24, (n >> 16) & 255, (n >> 8) & 255, n & 255)
  return Array.from({ length: count }, (_, i) => ({
    key: asBytes(`\n\0\0\x01\x06\0\0\0\0P\0\0${word(i)}`),
    data: asBytes(`${word(i)}\0P\0\0`),
  }))
}

describe('writeElements()', () => {
  it('writes the same bytes by hand as by the table', () => {
    const sets = arbitrarySet.filter((set) => !storesPoints(set) && set.data !== 'verdict').chain(withElements)
    fc.assert(
      fc.property(sets, action, ([set, elements], what) => {
        const list = { table: 't', set, elements, action: what }
        const [fast, table] = [new Writer(), new Writer()]
        for (const writer of [fast, table]) writer.beginNested(3)
        expect(writeFast(fast, list, 0)).toBe(writeByTable(table, list, 0))
        for (const writer of [fast, table]) writer.end()
        expect(Buffer.from(fast.written())).toEqual(Buffer.from(table.written()))
      }),
    )
  })

  it('splits a list that does not fit in one attribute, at the same place by hand and by the table', () => {
    const elements = numbered(5000)
    const list = { table: 't', set: endpoints, elements, action: 'add' } as const
    const seen: string[] = []
    let messages = 0
    for (let next = 0; next < elements.length;) {
      const writer = new Writer()
      const table = new Writer()
      table.beginNested(3)
      const splitByTable = writeByTable(table, list, next)
      next = writeElements(writer, list, next)
      expect(splitByTable).toBe(next)
      const message = elementListAttributes.read(writer.view, 0, writer.length)!
      expect(message).toMatchObject({ table: 't', set: 'endpoints' })
      messages++
      seen.push(...message.elements!.map(({ key }) => key!))
    }
    expect(seen).toEqual(elements.map(({ key }) => key))
    expect(messages).toBe(4)
  })

  it('splits ranges and verdicts, whose elements differ in length, too', () => {
    const jumps: NftSet = { ...endpoints, data: 'verdict' }
    const elements = numbered(3000).map(({ key }, i) => ({
      key,
      verdict: { code: 'goto' as const, chain: 'c'.repeat((i % 60) + 1) },
    }))
    const counts: number[] = []
    for (let next = 0; next < elements.length;) {
      const writer = new Writer()
      next = writeElements(writer, { table: 't', set: jumps, elements, action: 'add' }, next)
      counts.push(elementListAttributes.read(writer.view, 0, writer.length)!.elements!.length)
    }
    expect(counts.length).toBeGreaterThan(2)
    expect(counts.reduce((a, b) => a + b)).toBe(3000)
  })

  it('refuses a key or value of another length than the set has', () => {
    const list = (element: Element) => ({ table: 't', set: endpoints, elements: [element], action: 'add' }) as const
    expect(() => writeElements(new Writer(), list({ key: asBytes('abcd'), data: asBytes('abcdefgh') }), 0)).toThrow(
      "Cannot write an element of endpoints: its key has 4 bytes, the set's has 16",
    )
    expect(() => writeElements(new Writer(), list({ key: asBytes('x'.repeat(16)) }), 0)).toThrow(
      "its data has 0 bytes, the set's has 8",
    )
  })
})
