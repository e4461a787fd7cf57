// Messages of the domain name system (RFC 1035), as far as a small server needs them: one question in, records out. Pure.

import { canonicalIp, ipBytes } from '../../../../src/lib/ip.ts'

export const recordTypes = { A: 1, CNAME: 5, SOA: 6, PTR: 12, TXT: 16, AAAA: 28, SRV: 33, OPT: 41, ANY: 255 } as const
export const responseCodes = { ok: 0, formatError: 1, noSuchName: 3, notImplemented: 4 } as const

export interface Question {
  readonly id: number
  readonly opcode: number
  readonly isRecursionDesired: boolean
  /** In lower case, without the dot at the end. */
  readonly name: string
  readonly type: number
  readonly class: number
  /** The question as it was asked: an answer repeats it, capitals and all. */
  readonly raw: Buffer
  /** How large an answer by UDP may be; undefined for a client without extensions, which takes 512. */
  readonly udpSize: number | undefined
}

export type RecordData =
  | { readonly type: 'A' | 'AAAA'; readonly address: string }
  | { readonly type: 'CNAME' | 'PTR'; readonly target: string }
  | { readonly type: 'TXT'; readonly text: string }
  | { readonly type: 'SRV'; readonly port: number; readonly target: string }
  | { readonly type: 'SOA'; readonly zone: string }

export interface DnsRecord {
  readonly name: string
  readonly data: RecordData
}

export interface Answer {
  readonly code: number
  readonly answers: readonly DnsRecord[]
  readonly authority: readonly DnsRecord[]
  readonly additional: readonly DnsRecord[]
}

const HEADER = 12
const TTL_SECONDS = 5
const CLASS_IN = 1
const SRV_WEIGHT = 100
/** What we take and offer by UDP: small enough for every link. */
const OWN_UDP_SIZE = 1232
const PLAIN_UDP_SIZE = 512
const flags = { response: 0x8000, authoritative: 0x0400, truncated: 0x0200, recursionDesired: 0x0100 } as const

/** Undefined for what is no question: it gets no answer. */
export function decodeQuestion(message: Buffer): Question | undefined {
  if (message.length < HEADER) return undefined
  const word = message.readUInt16BE(2)
  if ((word & flags.response) !== 0 || message.readUInt16BE(4) !== 1) return undefined
  const labels: string[] = []
  let at = HEADER
  for (;;) {
    const length = message[at]
    if (length === undefined || length > 63) return undefined
    at += 1 + length
    if (length === 0) break
    labels.push(message.toString('latin1', at - length, at).toLowerCase())
  }
  if (at + 4 > message.length) return undefined
  return {
    id: message.readUInt16BE(0),
    opcode: (word >> 11) & 15,
    isRecursionDesired: (word & flags.recursionDesired) !== 0,
    name: labels.join('.'),
    type: message.readUInt16BE(at),
    class: message.readUInt16BE(at + 2),
    raw: message.subarray(HEADER, at + 4),
    udpSize: decodeUdpSize(message, at + 4),
  }
}

/** From the OPT record, which has the root's name and is the only one that a question brings. */
function decodeUdpSize(message: Buffer, at: number): number | undefined {
  const hasOpt = message.readUInt16BE(10) > 0 && message.length >= at + 11
  if (!hasOpt || message[at] !== 0 || message.readUInt16BE(at + 1) !== recordTypes.OPT) return undefined
  return Math.max(PLAIN_UDP_SIZE, message.readUInt16BE(at + 3))
}

export function udpLimit({ udpSize }: Question): number {
  return Math.min(udpSize ?? PLAIN_UDP_SIZE, OWN_UDP_SIZE)
}

/** An answer that is larger than the limit goes out empty and says so: the client asks again by TCP. */
export function encodeAnswer(question: Question, answer: Answer, limit: number): Buffer {
  const whole = encode(question, answer, 0)
  if (whole.length <= limit) return whole
  return encode(question, { ...answer, answers: [], authority: [], additional: [] }, flags.truncated)
}

function encode(question: Question, { code, answers, authority, additional }: Answer, extraFlags: number): Buffer {
  const head = Buffer.alloc(HEADER)
  const opt = question.udpSize === undefined ? [] : [encodeOpt()]
  head.writeUInt16BE(question.id)
  const desired = question.isRecursionDesired ? flags.recursionDesired : 0
  head.writeUInt16BE(flags.response | flags.authoritative | desired | extraFlags | (question.opcode << 11) | code, 2)
  for (const [i, count] of [1, answers.length, authority.length, additional.length + opt.length].entries()) {
    head.writeUInt16BE(count, 4 + 2 * i)
  }
  const records = [...answers, ...authority, ...additional].map((record) => encodeRecord(record, question.name))
  return Buffer.concat([head, question.raw, ...records, ...opt])
}

function encodeOpt(): Buffer {
  const opt = Buffer.alloc(11)
  opt.writeUInt16BE(recordTypes.OPT, 1)
  opt.writeUInt16BE(OWN_UDP_SIZE, 3)
  return opt
}

function encodeRecord({ name, data }: DnsRecord, questionName: string): Buffer {
  const fixed = Buffer.alloc(10)
  const bytes = encodeData(data)
  fixed.writeUInt16BE(recordTypes[data.type])
  fixed.writeUInt16BE(CLASS_IN, 2)
  fixed.writeUInt32BE(TTL_SECONDS, 4)
  fixed.writeUInt16BE(bytes.length, 8)
  // Most records are about the name in the question: two bytes point at it.
  const owner = name === questionName ? Buffer.of(0xc0, HEADER) : encodeName(name)
  return Buffer.concat([owner, fixed, bytes])
}

function encodeData(data: RecordData): Buffer {
  switch (data.type) {
    case 'A':
    case 'AAAA':
      return Buffer.from(ipBytes(data.address), 'latin1')
    case 'CNAME':
    case 'PTR':
      return encodeName(data.target)
    case 'TXT':
      return Buffer.concat([Buffer.of(data.text.length), Buffer.from(data.text)])
    case 'SRV': {
      const fixed = Buffer.alloc(6)
      fixed.writeUInt16BE(SRV_WEIGHT, 2)
      fixed.writeUInt16BE(data.port, 4)
      return Buffer.concat([fixed, encodeName(data.target)])
    }
    case 'SOA': {
      const numbers = Buffer.alloc(20)
      for (const [i, value] of [1, 7200, 1800, 86_400, TTL_SECONDS].entries()) numbers.writeUInt32BE(value, 4 * i)
      return Buffer.concat([encodeName(`ns.dns.${data.zone}`), encodeName(`hostmaster.${data.zone}`), numbers])
    }
  }
}

function encodeName(name: string): Buffer {
  const labels = name.split('.').filter((label) => label !== '')
  return Buffer.concat([...labels.flatMap((label) => [Buffer.of(label.length), Buffer.from(label)]), Buffer.of(0)])
}

/** The address that a reverse name asks about: `1.0.96.10.in-addr.arpa`. */
export function parseReverseName(name: string): string | undefined {
  const v4 = /^((?:\d{1,3}\.){4})in-addr\.arpa$/.exec(name)?.[1]
  if (v4 !== undefined) return canonicalIp(v4.slice(0, -1).split('.').reverse().join('.'))
  const v6 = /^((?:[0-9a-f]\.){32})ip6\.arpa$/.exec(name)?.[1]
  if (v6 === undefined) return undefined
  const digits = v6.replaceAll('.', '').split('').reverse().join('')
  return canonicalIp(digits.match(/.{4}/g)!.join(':'))
}
