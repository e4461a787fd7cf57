import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { arbitraryElement, arbitrarySet } from '../../../test/support/arbitrary-nftables.ts'
import { asBytes, ipBytes } from '../../lib/ip.ts'
import type { Element, NftSet } from '../types.ts'
import { elementsFromAttributes, elementToAttributes, storesPoints } from './element.ts'
import { makeSet } from '../make-set.ts'

const ranges = makeSet('pod-cidrs', ['ipv4_addr'], { interval: true })

const ip = (text: string) => ipBytes(text)
const range = (first: string, last: string): Element => ({ key: ip(first), keyEnd: ip(last) })
const END = 1

describe('elements', () => {
  it('are read as they were written, in sets that do not store points', () => {
    const setAndElement = arbitrarySet
      .filter((set) => !storesPoints(set))
      .chain((set) => fc.tuple(fc.constant(set), arbitraryElement(set)))
    fc.assert(
      fc.property(setAndElement, ([set, element]) => {
        expect(elementsFromAttributes(set, elementToAttributes(set, element, 'add'))).toEqual([element])
      }),
    )
  })

  it('are deleted by their key alone', () => {
    const set: NftSet = { ...ranges, interval: false, data: ['inet_service'] }
    const element = { key: ip('10.0.0.1'), data: asBytes('\0P\0\0') }
    expect(elementToAttributes(set, element, 'delete')).toEqual([{ key: ip('10.0.0.1') }])
  })

  it('of a map need what the map leads to', () => {
    const map: NftSet = { ...ranges, interval: false, data: ['inet_service'] }
    expect(() => elementToAttributes(map, { key: ip('10.0.0.1') }, 'add')).toThrow(
      'Cannot write an element of map pod-cidrs: it has no data',
    )
    expect(() => elementToAttributes({ ...map, data: 'verdict' }, { key: ip('10.0.0.1') }, 'add')).toThrow('no verdict')
  })

  it('with a verdict that is no jump have neither data nor verdict', () => {
    const map: NftSet = { ...ranges, interval: false, data: 'verdict' }
    expect(elementsFromAttributes(map, [{ key: ip('1.2.3.4'), data: { verdict: { code: 'drop' } } }])).toEqual([
      { key: ip('1.2.3.4') },
    ])
  })
})

describe('ranges of a single field', () => {
  it('are a beginning and the key after the end', () => {
    expect(elementToAttributes(ranges, range('10.0.0.0', '10.255.255.255'), 'add')).toEqual([
      { key: ip('10.0.0.0') },
      { flags: END, key: ip('11.0.0.0') },
    ])
  })

  it('that run to the last key have no end, and say so to nft', () => {
    expect(elementToAttributes(ranges, range('255.255.255.0', '255.255.255.255'), 'add')).toEqual([
      { key: ip('255.255.255.0'), userdata: '\x01\x04\x01\0\0\0' },
    ])
  })

  it('are found in any order, beside the end that nft puts before the first', () => {
    const points = [
      { key: ip('20.0.0.0') },
      { flags: END, key: ip('11.0.0.0') },
      { flags: END, key: ip('0.0.0.0') },
      { key: ip('10.0.0.0') },
      { flags: END, key: ip('20.0.0.1') },
      { key: ip('255.0.0.0') },
    ]
    expect(elementsFromAttributes(ranges, points)).toEqual([
      range('10.0.0.0', '10.255.255.255'),
      range('20.0.0.0', '20.0.0.0'),
      range('255.0.0.0', '255.255.255.255'),
    ])
  })

  it('may follow each other without an end in between, or with one', () => {
    const begins = [{ key: ip('10.0.0.0') }, { key: ip('11.0.0.0') }, { flags: END, key: ip('12.0.0.0') }]
    const expected = [range('10.0.0.0', '10.255.255.255'), range('11.0.0.0', '11.255.255.255')]
    expect(elementsFromAttributes(ranges, begins)).toEqual(expected)
    expect(elementsFromAttributes(ranges, [...begins, { flags: END, key: ip('11.0.0.0') }])).toEqual(expected)
  })

  it('are read as they were written when they are apart from each other', () => {
    const points = fc
      .uniqueArray(fc.nat(0xffff), { minLength: 2, maxLength: 40 })
      .map((list) => list.toSorted((a, b) => a - b))
    const key = (port: number) => String.fromCharCode(port >> 8, port & 0xff, 0, 0)
    const ports: NftSet = { ...ranges, key: ['inet_service'] }
    fc.assert(
      fc.property(points, (list) => {
        const written: Element[] = []
        let free = 0
        for (let i = 0; i + 1 < list.length; i += 2) {
          if (list[i]! < free) continue
          written.push({ key: asBytes(key(list[i]!)), keyEnd: asBytes(key(list[i + 1]!)) })
          free = list[i + 1]! + 2
        }
        const wire = written.flatMap((element) => elementToAttributes(ports, element, 'add'))
        expect(elementsFromAttributes(ports, wire.toReversed())).toEqual(written)
      }),
    )
  })
})
