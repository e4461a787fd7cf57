import { describe, expect, it } from 'vitest'
import { decodeQuestion, encodeAnswer, parseReverseName, udpLimit, type DnsRecord } from './dns-message.ts'

/** A question for the address of Web.default, with recursion desired. */
const question = Buffer.from('abcd01000001000000000000', 'hex')
const name = Buffer.from('\x03Web\x07default\x00', 'latin1')
const tail = Buffer.from('00010001', 'hex')
const plain = Buffer.concat([question, name, tail])

describe('decodeQuestion()', () => {
  it('reads a question, and how large an answer may be', () => {
    expect(decodeQuestion(plain)).toMatchObject({
      id: 0xabcd,
      name: 'web.default',
      type: 1,
      class: 1,
      udpSize: undefined,
    })
    const withOpt = Buffer.concat([plain, Buffer.from('0000290fa0000000000000', 'hex')])
    withOpt[11] = 1
    const decoded = decodeQuestion(withOpt)!
    expect(decoded.udpSize).toBe(4000)
    expect(udpLimit(decoded)).toBe(1232)
  })

  it.each([
    ['an answer', Buffer.concat([Buffer.from('abcd81000001000000000000', 'hex'), name, tail])],
    ['cut short', plain.subarray(0, 15)],
    ['empty', Buffer.alloc(0)],
    ['a name that points elsewhere', Buffer.concat([question, Buffer.of(0xc0, 12), tail])],
  ])('gives nothing for what is %s', (_, bytes) => expect(decodeQuestion(bytes)).toBeUndefined())
})

describe('encodeAnswer()', () => {
  const record: DnsRecord = { name: 'web.default', data: { type: 'A', address: '10.96.0.5' } }
  const answer = { code: 0, answers: [record], authority: [], additional: [] }

  it('repeats the question as it was asked, and points at its name', () => {
    const bytes = encodeAnswer(decodeQuestion(plain)!, answer, 512)
    expect(bytes.subarray(0, 12).toString('hex')).toBe('abcd85000001000100000000')
    expect(bytes.subarray(12, 12 + name.length)).toEqual(name)
    expect(bytes.subarray(12 + name.length + 4).toString('hex')).toBe('c00c000100010000000500040a600005')
  })

  it('says when an answer is too large, and sends none of it', () => {
    const many = { ...answer, answers: Array.from({ length: 40 }, () => record) }
    const bytes = encodeAnswer(decodeQuestion(plain)!, many, 512)
    expect(bytes.readUInt16BE(2) & 0x0200).toBe(0x0200)
    expect(bytes.length).toBe(plain.length)
  })
})

it.each([
  ['5.0.96.10.in-addr.arpa', '10.96.0.5'],
  ['a.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.6.9.0.0.0.0.d.f.ip6.arpa', 'fd00:96::a'],
  ['300.0.0.10.in-addr.arpa', undefined],
  ['example.test', undefined],
])('parseReverseName(%j)', (name, address) => expect(parseReverseName(name)).toBe(address))
