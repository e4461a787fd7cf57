// A rule that was read back, as text like nft's: what its expressions do, from the values in the registers. nft itself need
// not be there for it.

import { decodeHost32 } from '../lib/endian.ts'
import { type Bytes, formatIp } from '../lib/ip.ts'
import { PROTOCOL_NUMBERS, decodePort } from './fields.ts'
import type { Expression, Rule } from './types.ts'

/** The rule's own text where it has one. */
export function describeRule({ text, expressions }: Rule): string {
  return text === '' ? describeExpressions(expressions) : text
}

/** What a register holds, as text. */
interface Held {
  readonly text: string
  readonly format: (value: Bytes) => string
  /** What it is, where a rule gives it. */
  readonly value?: Bytes
}

export function describeExpressions(expressions: readonly Expression[]): string {
  const registers: (Held | undefined)[] = []
  const words: string[] = []
  for (const e of expressions) {
    const word = describe(e, registers)
    if (word !== '') words.push(word)
  }
  return words.join(' ')
}

function describe(e: Expression, registers: (Held | undefined)[]): string {
  switch (e.kind) {
    case 'payload':
    case 'meta':
    case 'ct':
    case 'fib':
    case 'numgen':
      registers.length = e.dreg
      registers[e.dreg] = loaded(e)
      return ''
    case 'hash': {
      const text = `jhash ${concat(registers, e.sreg)} mod ${e.modulus} seed 0x${e.seed.toString(16)}`
      registers.length = e.dreg
      registers[e.dreg] = { text, format: number }
      return ''
    }
    case 'immediate':
      registers.length = e.dreg
      registers[e.dreg] = { text: constant(e.value), format: hex, value: e.value }
      return ''
    case 'byteorder':
      return ''
    case 'bitwise': {
      const { text, format } = held(registers, e.sreg)
      registers.length = e.dreg
      registers[e.dreg] = { text: masked(text, e, format), format: e.length === 4 ? number : format }
      return ''
    }
    case 'cmp': {
      const { text, format } = held(registers, e.sreg)
      if (isFlagTest(text) && e.op === 'neq') return text.replace(' & ', ' ')
      return `${text} ${e.op === 'eq' ? '' : '!= '}${format(e.value)}`
    }
    case 'lookup': {
      const key = concat(registers, e.sreg)
      if (e.dreg === 'verdict') return `${key} vmap @${e.set}`
      if (e.dreg === undefined) return `${key} ${e.invert === true ? '!= ' : ''}@${e.set}`
      registers.length = e.dreg
      registers[e.dreg] = { text: `${key} map @${e.set}`, format: hex }
      return ''
    }
    case 'metaSet':
      return setMeta(e.key, held(registers, e.sreg))
    case 'dynset':
      return `${e.op} @${e.set} { ${held(registers, e.keyReg).text}${timeout(e.timeoutMs)}${value(registers, e.dataReg)}${e.limits === undefined ? '' : ` ${describe(e.limits, [])}`} }`
    case 'verdict':
      return 'chain' in e ? `${e.code} ${e.chain}` : e.code
    case 'nat': {
      const port = e.protoMin === undefined ? undefined : registers[e.protoMin]
      return `dnat ${e.family} to ${held(registers, e.addrMin).text}${port === undefined ? '' : `:${port.text}`}`
    }
    case 'masq':
      return e.flags === 0 ? 'masquerade' : 'masquerade fully-random'
    case 'redir':
      return `redirect to ${held(registers, e.protoMin).text}`
    case 'reject':
      return 'reject'
    case 'log':
      return `log group ${e.group}`
    case 'limit':
      return `limit rate ${e.over ? 'over ' : ''}${e.perSecond}/second burst ${e.burst} packets`
    case 'connlimit':
      return `ct count ${e.over ? 'over ' : ''}${e.most}`
    case 'counter':
      return `counter packets ${e.packets} bytes ${e.bytes}`
    case 'unknown':
      return extension(e.name, e.attributes) ?? `(${e.name})`
  }
}

function setMeta(key: 'mark' | 'nftrace', { text, value }: Held): string {
  if (key === 'nftrace') return 'meta nftrace set 1'
  return `meta mark set ${value === undefined ? text : number(value)}`
}

/** A match or target of iptables, as nft names one that it has no words for. Its name is the first attribute. */
function extension(kind: string, attributes: Bytes): string | undefined {
  if (kind !== 'match' && kind !== 'target') return undefined
  const [name = ''] = attributes.slice(4).split('\0')
  return /^[\w-]+$/.test(name) ? `xt ${kind} "${name}"` : undefined
}

function loaded(e: Extract<Expression, { kind: 'payload' | 'meta' | 'ct' | 'fib' | 'numgen' }>): Held {
  switch (e.kind) {
    case 'payload':
      return e.base === 'network' ? { text: networkField(e.offset), format: address } : transportField(e)
    case 'meta':
      if (e.key === 'l4proto') return { text: 'meta l4proto', format: protocol }
      if (e.key === 'iifname') return { text: 'iifname', format: name }
      return { text: `meta ${e.key}`, format: number }
    case 'ct': {
      const key = CT_WORDS[e.key] ?? e.key
      return {
        text: `ct ${e.direction === undefined ? '' : `${e.direction} `}${key}`,
        format: CT_FORMATS[e.key] ?? hex,
      }
    }
    case 'fib':
      return { text: `fib ${e.source} type`, format: (bytes) => (decodeHost32(bytes) === 2 ? 'local' : number(bytes)) }
    case 'numgen':
      return { text: `numgen random mod ${e.modulus}`, format: number }
  }
}

function transportField({ offset, length }: { readonly offset: number; readonly length: number }): Held {
  if (offset === 0 && length === 4) {
    return { text: 'th sport . th dport', format: (bytes) => `${port(bytes)} . ${port(bytes.slice(2))}` }
  }
  return { text: offset === 0 ? 'th sport' : 'th dport', format: port }
}

const CT_WORDS: Readonly<Record<string, string>> = {
  dstIp: 'ip daddr',
  dstIp6: 'ip6 daddr',
  srcIp: 'ip saddr',
  srcIp6: 'ip6 saddr',
  protoDst: 'proto-dst',
  protoSrc: 'proto-src',
}
const CT_FORMATS: Readonly<Record<string, (value: Bytes) => string>> = {
  dstIp: address,
  dstIp6: address,
  srcIp: address,
  srcIp6: address,
  protoDst: port,
  protoSrc: port,
}
/** Bits of ct state and ct status that rules of proxies test. */
const FLAGS: Readonly<Record<string, readonly (readonly [number, string])[]>> = {
  'ct state': [
    [1, 'invalid'],
    [2, 'established'],
    [4, 'related'],
    [8, 'new'],
  ],
  'ct status': [[32, 'dnat']],
}

function masked(text: string, e: Extract<Expression, { kind: 'bitwise' }>, format: (value: Bytes) => string): string {
  const flags = FLAGS[text]
  if (e.length !== 4) return `${text} & ${format(e.mask)}`
  const [mask, xor] = [decodeHost32(e.mask), decodeHost32(e.xor)]
  if (flags !== undefined) {
    const names = flags.filter(([bit]) => (mask & bit) !== 0).map(([, word]) => word)
    return `${text} & ${names.join(',') || hexNumber(mask)}`
  }
  if (xor === 0) return `${text} & ${text.endsWith('addr') ? address(e.mask) : hexNumber(mask)}`
  if (mask === 0xffffffff) return `${text} xor ${hexNumber(xor)}`
  return (mask | xor) >>> 0 === 0xffffffff
    ? `${text} or ${hexNumber(xor)}`
    : `${text} & ${hexNumber(mask)} xor ${hexNumber(xor)}`
}

function isFlagTest(text: string): boolean {
  return /^ct (state|status) & /.test(text)
}

function held(registers: readonly (Held | undefined)[], at: number): Held {
  return registers[at] ?? { text: '?', format: hex }
}

/** All that was loaded from the register on. */
function concat(registers: readonly (Held | undefined)[], from: number): string {
  const parts = registers.slice(from).filter((each) => each !== undefined)
  return parts.map(({ text }) => text).join(' . ')
}

function value(registers: readonly (Held | undefined)[], at: number | undefined): string {
  return at === undefined ? '' : ` : ${concat(registers, at)}`
}

function timeout(ms: number | undefined): string {
  return ms === undefined || ms === 0 ? '' : ` timeout ${ms / 1000}s`
}

function networkField(offset: number): string {
  if (offset === 12) return 'ip saddr'
  if (offset === 16) return 'ip daddr'
  if (offset === 8) return 'ip6 saddr'
  return offset === 24 ? 'ip6 daddr' : `@nh,${offset * 8}`
}

/** nft compares the bytes of a prefix that is a whole number of them. */
function address(bytes: Bytes): string {
  if (bytes.length === 4 || bytes.length === 16) return formatIp(bytes)
  const full = bytes.length < 4 ? 4 : 16
  return `${formatIp(bytes.padEnd(full, '\0'))}/${bytes.length * 8}`
}

function protocol(bytes: Bytes): string {
  const found = Object.entries(PROTOCOL_NUMBERS).find(([, code]) => code === bytes.charCodeAt(0))
  return found?.[0].toLowerCase() ?? String(bytes.charCodeAt(0))
}

function port(bytes: Bytes): string {
  return String(decodePort(bytes))
}

function name(bytes: Bytes): string {
  const text = bytes.replace(/\0+$/, '')
  return JSON.stringify(bytes.length < 16 ? `${text}*` : text)
}

function number(bytes: Bytes): string {
  return bytes.length === 4 ? hexNumber(decodeHost32(bytes)) : hex(bytes)
}

function hexNumber(value: number): string {
  return value < 10 ? String(value) : `0x${value.toString(16).padStart(8, '0')}`
}

function constant(bytes: Bytes): string {
  if (bytes.length === 4 || bytes.length === 16) return formatIp(bytes)
  return bytes.length === 2 ? port(bytes) : hex(bytes)
}

function hex(bytes: Bytes): string {
  return `0x${Array.from(bytes, (each) => each.charCodeAt(0).toString(16).padStart(2, '0')).join('')}`
}
