import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { arbitrarySet } from '../../../test/support/arbitrary-nftables.ts'
import type { NftSet } from '../types.ts'
import { Writer } from '../../netlink/writer.ts'
import { isAnonymous, setAttributes, setFromAttributes, setToAttributes } from './set.ts'
import { makeSet } from '../make-set.ts'

const base = makeSet('s', ['ipv4_addr'])

const hex = (text: string | undefined) => Buffer.from(text ?? '', 'latin1').toString('hex')

describe('sets', () => {
  it('are read as they were written', () => {
    fc.assert(
      fc.property(arbitrarySet, fc.nat(1000), (set, id) => {
        const writer = new Writer()
        setAttributes.write(writer, setToAttributes('kube-proxy', set, id))
        const attributes = setAttributes.read(writer.view, 0, writer.length)
        expect(attributes === undefined ? undefined : setFromAttributes(attributes)).toEqual(set)
      }),
    )
  })

  it('have the type number that nft gives to a concatenation', () => {
    const { keyType, keyLength } = setToAttributes(
      't',
      { ...base, key: ['ipv4_addr', 'inet_proto', 'inet_service'] },
      1,
    )
    expect([keyType, keyLength]).toEqual([0x730d, 12])
  })

  it('have a key as long as the field when there is only one', () => {
    expect(setToAttributes('t', { ...base, key: ['inet_service'] }, 1).keyLength).toBe(2)
  })

  it('tell the kernel the lengths of the fields when ranges have several', () => {
    const { flags, desc } = setToAttributes('t', { ...base, interval: true, key: ['inet_proto', 'ipv6_addr'] }, 1)
    expect(flags).toBe(0x84)
    expect(desc?.concat).toEqual([{ length: 1 }, { length: 16 }])
  })

  it('that packets fill begin small where the kernel knows their size', () => {
    const descOf = (set: Partial<NftSet>) => setToAttributes('t', { ...base, ...set }, 1).desc
    expect(descOf({ dynamic: true, size: 65_535 })).toBeUndefined()
    expect(descOf({ dynamic: true, size: 1000 })).toEqual({ size: 1000 })
    expect(descOf({ size: 65_535 })).toEqual({ size: 65_535 })
  })

  // Captured from nft 1.0.6 with --debug=mnl.
  it.each<[string, Partial<NftSet>, string[]]>([
    ['type ipv4_addr', {}, ['000402000000']],
    [
      'type ipv4_addr . inet_proto . inet_service',
      { key: ['ipv4_addr', 'inet_proto', 'inet_service'] },
      ['000400000000', '0308', '00040d000000', '0100'],
    ],
    [
      'type ipv4_addr : ipv4_addr; comment "x"',
      { data: ['ipv4_addr'], comment: 'x' },
      ['000402000000', '010402000000', '060400000000', '07027800'],
    ],
    [
      'type ipv4_addr . inet_proto : verdict',
      { key: ['ipv4_addr', 'inet_proto'], data: 'verdict' },
      ['000400000000', '010400000000', '030800040d0000000100', '060400000000'],
    ],
    [
      'typeof numgen random mod 2 : verdict',
      { key: ['integer'], data: 'verdict' },
      [
        '000401000000',
        '010400000000',
        '031a',
        '000417000000',
        '0112',
        '000401000000',
        '010402000000',
        '020400000000',
        '0408',
        '000401000000',
        '0100',
        '060400000000',
      ],
    ],
    [
      'typeof numgen random mod 2 : ip6 daddr',
      { key: ['integer'], data: ['ipv6_addr'] },
      [
        '000401000000',
        '010402000000',
        '031a',
        '000417000000',
        '0112',
        '000401000000',
        '010402000000',
        '020400000000',
        '0414',
        '000407000000',
        '010c',
        '00040d000000',
        '010409000000',
        '060400000000',
      ],
    ],
    [
      'typeof ip daddr . meta l4proto . th dport . numgen random mod 2 : ip daddr . th dport',
      { key: ['ipv4_addr', 'inet_proto', 'inet_service', 'integer'], data: ['ipv4_addr', 'inet_service'] },
      [
        '000400000000',
        '010400000000',
        '0360',
        '00040d000000',
        '0158',
        '0014',
        '000407000000',
        '010c',
        '00040c000000',
        '01040c000000',
        '010e',
        '000409000000',
        '0106',
        '000410000000',
        '0214',
        '000407000000',
        '010c',
        '00040b000000',
        '010402000000',
        '031a',
        '000417000000',
        '0112',
        '000401000000',
        '010402000000',
        '020400000000',
        '0434',
        '00040d000000',
        '012c',
        '0014',
        '000407000000',
        '010c',
        '00040c000000',
        '01040c000000',
        '0114',
        '000407000000',
        '010c',
        '00040b000000',
        '010402000000',
        '060400000000',
      ],
    ],
  ])('carry the userdata of nft for %s', (_, set, userdata) => {
    expect(hex(setToAttributes('t', { ...base, ...set }, 1).userdata)).toBe(userdata.join(''))
  })

  it('that are anonymous are told apart', () => {
    expect(isAnonymous({ table: 't', name: '__set0', flags: 3, keyType: 7 })).toBe(true)
    expect(isAnonymous({ table: 't', name: 'set0', flags: 2, keyType: 7 })).toBe(false)
  })

  it('with fields that we never write have no fields', () => {
    const ether = 9
    const read = setFromAttributes({ table: 't', name: 's', flags: 8, keyType: (7 << 6) | ether, dataType: ether })
    expect(read).toMatchObject({ key: [], data: [] })
  })

  it('with integers say that these are marks, which every nft can print, and are read back from nft as well', () => {
    const [mark, integer] = [19, 4]
    expect(setToAttributes('t', { ...base, key: ['ipv4_addr', 'integer'] }, 1).keyType).toBe((7 << 6) | mark)
    for (const type of [mark, integer]) {
      const read = setFromAttributes({ table: 't', name: 's', flags: 0, keyType: (7 << 6) | type })
      expect(read?.key).toEqual(['ipv4_addr', 'integer'])
    }
  })

  it('with a comment that does not fit cannot be written', () => {
    expect(() => setToAttributes('t', { ...base, comment: 'x'.repeat(128) }, 1)).toThrow(/at most 127 fit/)
    const long: NftSet = {
      ...base,
      key: ['ipv4_addr', 'integer'],
      data: ['ipv4_addr', 'integer'],
      comment: 'x'.repeat(127),
    }
    expect(() => setToAttributes('t', long, 1)).toThrow(/256 is the most/)
  })
})
