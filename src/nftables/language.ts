// Rules in nft's language: each piece knows its text and the kernel expressions that nft makes of it.
//
// Other tools on the node run `nft list ruleset`, and nft aborts on bytecode that its own language cannot produce. So
// every piece here is one that nft has, and tests compile each rule's text with nft and compare the expressions.

import { host32 } from '../lib/endian.ts'
import {
  type Bytes,
  type Cidr,
  type Family,
  formatCidr,
  formatIp,
  ipBytes,
  prefixMask,
  asBytes,
  bytesOf,
} from '../lib/ip.ts'
import { PROTOCOL_NUMBERS, type TransportProtocol } from './fields.ts'
import type { CtKey, Expression, NftFamily, Rule } from './types.ts'

// Constants of the kernel's headers (rtnetlink.h, icmp.h, nf_tables.h, nf_conntrack_common.h, nf_nat.h).
const RTN_LOCAL = 2
const ICMP_PORT_UNREACH = 3
const ICMPV6_PORT_UNREACH = 4
const NFT_REJECT_ICMP_UNREACH = 0
const NFT_REJECT_TCP_RST = 1
const ICMP_DEST_UNREACH = 3
export const ICMP_ECHO = 8
export const ICMPV6_ECHO_REQUEST = 128
const ICMPV6_DEST_UNREACH = 1
const CT_STATE_RELATED = 1 << 2
const CT_STATE_NEW = 1 << 3
const IPS_SEEN_REPLY = 1 << 1
const IPS_ASSURED = 1 << 2
const IPS_CONFIRMED = 1 << 3
const IPS_DST_NAT = 1 << 5
const IPS_DYING = 1 << 9
const IP_CT_DIR_REPLY = 1
const TCP_FLAGS = { fin: 0x01, syn: 0x02, rst: 0x04, ack: 0x10 } as const
const NF_NAT_RANGE_PROTO_RANDOM_FULLY = 1 << 4

const ZERO: Bytes = asBytes('\0\0\0\0')

/** A part of a rule: a match or a statement. */
export interface Piece {
  readonly text: string
  readonly expressions: readonly Expression[]
}

/** Something that can be loaded into registers and matched. */
export interface Operand {
  readonly text: string
  /** 32-bit registers that it takes. */
  readonly words: number
  readonly load: (dreg: number) => Expression
  /** Only these bits of what was loaded count. */
  readonly mask?: Bytes
  /** What it is computed from; then load() is not for it. */
  readonly hash?: HashedOperands
}

/** Operands whose hash is another one. */
export interface HashedOperands {
  readonly operands: readonly Pick<Operand, 'words' | 'load'>[]
  readonly modulus: number
  readonly seed: number
}

/** A rule out of its parts, in order. */
export function rule(pieces: readonly Piece[], comment?: string): Rule {
  return {
    text: pieces.map((piece) => piece.text).join(' '),
    comment,
    expressions: pieces.flatMap((piece) => piece.expressions),
  }
}

export function nftFamily(family: Family): NftFamily {
  return family === 4 ? 'ip' : 'ip6'
}

// ---- operands

export function sourceAddress(family: Family): Operand {
  return networkField(`${nftFamily(family)} saddr`, family, family === 4 ? 12 : 8)
}

/** The first bits of the client's address: the range of this prefix that it is in. */
export function sourceNetwork(family: Family, prefix: number): Operand {
  const address = sourceAddress(family)
  const length = address.words * 4
  if (prefix === length * 8) return address
  const mask = prefixMask(prefix, length)
  return { ...address, text: `${address.text} & ${formatIp(mask)}`, mask }
}

export function destinationAddress(family: Family): Operand {
  return networkField(`${nftFamily(family)} daddr`, family, family === 4 ? 16 : 24)
}

export const protocol: Operand = {
  text: 'meta l4proto',
  words: 1,
  load: (dreg) => ({ kind: 'meta', key: 'l4proto', dreg }),
}

export const sourcePort: Operand = {
  text: 'th sport',
  words: 1,
  load: (dreg) => ({ kind: 'payload', base: 'transport', offset: 0, length: 2, dreg }),
}

export const destinationPort: Operand = {
  text: 'th dport',
  words: 1,
  load: (dreg) => ({ kind: 'payload', base: 'transport', offset: 2, length: 2, dreg }),
}

/** The destination that the client dialled, before any translation. */
export function originalDestinationAddress(family: Family): Operand {
  return {
    text: `ct original ${nftFamily(family)} daddr`,
    words: addressWords(family),
    load: (dreg) => ct(family === 4 ? 'dstIp' : 'dstIp6', dreg, 'original'),
  }
}

/** nft understands this one only behind a match on the protocol. */
export const originalDestinationPort: Operand = {
  text: 'ct original proto-dst',
  words: 1,
  load: (dreg) => ct('protoDst', dreg, 'original'),
}

/** The client that began the connection, before any translation. */
export function originalSourceAddress(family: Family): Operand {
  return {
    text: `ct original ${nftFamily(family)} saddr`,
    words: addressWords(family),
    load: (dreg) => ct(family === 4 ? 'srcIp' : 'srcIp6', dreg, 'original'),
  }
}

/** As {@link originalDestinationPort}. */
export const originalSourcePort: Operand = {
  text: 'ct original proto-src',
  words: 1,
  load: (dreg) => ct('protoSrc', dreg, 'original'),
}

/** A random number in 0..modulus-1, drawn for each packet. */
export function random(modulus: number): Operand {
  return {
    text: `numgen random mod ${modulus}`,
    words: 1,
    load: (dreg) => ({ kind: 'numgen', type: 'random', modulus, offset: 0, dreg }),
  }
}

/** A number in 0..modulus-1, the same for the same operands. */
export function hashOf(operands: readonly Operand[], { modulus, seed }: { modulus: number; seed: number }): Operand {
  return {
    text: `jhash ${concat(operands)} mod ${modulus} seed 0x${seed.toString(16)}`,
    words: 1,
    load: loadNoHash,
    hash: { operands, modulus, seed },
  }
}

// ---- matches

export function isIn(operands: readonly Operand[], set: string): Piece {
  return { text: `${concat(operands)} @${set}`, expressions: [...loadAll(operands), { kind: 'lookup', set, sreg: 0 }] }
}

export function isNotIn(operands: readonly Operand[], set: string): Piece {
  return {
    text: `${concat(operands)} != @${set}`,
    expressions: [...loadAll(operands), { kind: 'lookup', set, sreg: 0, invert: true }],
  }
}

/** `value` is what the operand is to be, as text and as it is loaded. */
export function equals(operand: Operand, text: string, value: Bytes): Piece {
  return {
    text: `${operand.text} ${text}`,
    expressions: [operand.load(0), { kind: 'cmp', op: 'eq', sreg: 0, value }],
  }
}

/** nft compares both at once. */
export function portsAre(from: number, to: number): Piece {
  return {
    text: `th sport ${from} th dport ${to}`,
    expressions: [
      { kind: 'payload', base: 'transport', offset: 0, length: 4, dreg: 0 },
      { kind: 'cmp', op: 'eq', sreg: 0, value: bytesOf(from >> 8, from & 0xff, to >> 8, to & 0xff) },
    ],
  }
}

export function destinationPortIs(to: number): Piece {
  return {
    text: `th dport ${to}`,
    expressions: [
      { kind: 'payload', base: 'transport', offset: 2, length: 2, dreg: 0 },
      { kind: 'cmp', op: 'eq', sreg: 0, value: bytesOf(to >> 8, to & 0xff) },
    ],
  }
}

export function isProtocol(name: TransportProtocol): Piece {
  const value = String.fromCharCode(PROTOCOL_NUMBERS[name])
  return {
    text: `meta l4proto ${name.toLowerCase()}`,
    expressions: [protocol.load(0), { kind: 'cmp', op: 'eq', sreg: 0, value: asBytes(value) }],
  }
}

/** Interface names of 16 bytes, or shorter ones that end in `*`. */
export function inputInterface(op: 'eq' | 'neq', name: string): Piece {
  const value = name.endsWith('*') ? name.slice(0, -1) : name.padEnd(16, '\0')
  return {
    text: `iifname ${op === 'eq' ? '' : '!= '}"${name}"`,
    expressions: [
      { kind: 'meta', key: 'iifname', dreg: 0 },
      { kind: 'cmp', op, sreg: 0, value: asBytes(value) },
    ],
  }
}

/** Whether an address belongs to this machine. */
export function isLocalAddress(source: 'saddr' | 'daddr'): Piece {
  return {
    text: `fib ${source} type local`,
    expressions: [
      { kind: 'fib', source, result: 'type', dreg: 0 },
      { kind: 'cmp', op: 'eq', sreg: 0, value: host32(RTN_LOCAL) },
    ],
  }
}

/** Whether the client is in the range. nft compares the first bytes of a range that ends with a byte, and masks others. */
export function sourceIs(op: 'eq' | 'neq', cidr: Cidr): Piece {
  const { family, network, prefix } = cidr
  const { text, load } = sourceAddress(family)
  const isOneAddress = prefix === network.length * 8
  const words = `${text} ${op === 'eq' ? '' : '!= '}${isOneAddress ? formatIp(network) : formatCidr(cidr)}`
  if (prefix % 8 === 0) {
    const value = network.slice(0, prefix / 8)
    const first = { ...load(0), length: value.length } as Expression
    return { text: words, expressions: [first, { kind: 'cmp', op, sreg: 0, value }] }
  }
  return {
    text: words,
    expressions: [load(0), masked(0, prefixMask(prefix, network.length)), { kind: 'cmp', op, sreg: 0, value: network }],
  }
}

export function isLoopback(family: Family): Piece {
  return loopback(family, 'eq')
}

export function isNotLoopback(family: Family): Piece {
  return loopback(family, 'neq')
}

/** nft compares 127.0.0.0/8 by its first byte. */
function loopback(family: Family, op: 'eq' | 'neq'): Piece {
  const length = family === 4 ? 1 : 16
  const value = family === 4 ? '\x7f' : '\0'.repeat(15) + '\x01'
  const not = op === 'neq' ? '!= ' : ''
  return {
    text: family === 4 ? `ip daddr ${not}127.0.0.0/8` : `ip6 daddr ${not}::1`,
    expressions: [
      { kind: 'payload', base: 'network', offset: family === 4 ? 16 : 24, length, dreg: 0 },
      { kind: 'cmp', op, sreg: 0, value: asBytes(value) },
    ],
  }
}

export const isNewConnection: Piece = flagMatch('ct state new', ct('state', 0), CT_STATE_NEW)
export const wasDnated: Piece = flagMatch('ct status dnat', ct('status', 0), IPS_DST_NAT)

/** Packets that come back from where the connection was sent to. */
export const isReply: Piece = {
  text: 'ct direction reply',
  expressions: [ct('direction', 0), { kind: 'cmp', op: 'eq', sreg: 0, value: bytesOf(IP_CT_DIR_REPLY) }],
}

/** An ICMP error about a connection. */
export const isRelated: Piece = flagMatch('ct state related', ct('state', 0), CT_STATE_RELATED)
/** The tracker has seen its first packet on its way, and its handshake has not come to its end. */
export const isUnsettled: Piece = {
  text: 'ct status & (confirmed | assured) == confirmed',
  expressions: [
    ct('status', 0),
    { kind: 'bitwise', sreg: 0, dreg: 0, length: 4, mask: host32(IPS_CONFIRMED | IPS_ASSURED), xor: ZERO },
    { kind: 'cmp', op: 'eq', sreg: 0, value: host32(IPS_CONFIRMED) },
  ],
}
/** The tracker has forgotten it already. */
export const isForgotten: Piece = flagMatch('ct status dying', ct('status', 0), IPS_DYING)
/** The first packet of a connection. The tracker confirms a connection when that packet leaves this machine, or arrives. */
export const isUnconfirmed: Piece = flagMatch('ct status ! confirmed', ct('status', 0), IPS_CONFIRMED, 'eq')
export const isUnanswered: Piece = flagMatch('ct status ! seen-reply', ct('status', 0), IPS_SEEN_REPLY, 'eq')

/** Exactly these of the flags fin, syn, rst and ack. Behind a match on TCP. */
export function tcpFlagsAre(...flags: readonly (keyof typeof TCP_FLAGS)[]): Piece {
  const bits = (names: readonly (keyof typeof TCP_FLAGS)[]) =>
    String.fromCharCode(names.reduce((sum, name) => sum | TCP_FLAGS[name], 0))
  const all = Object.keys(TCP_FLAGS) as (keyof typeof TCP_FLAGS)[]
  return {
    text: `tcp flags & (${all.join(' | ')}) == ${flags.join(' | ')}`,
    expressions: [
      { kind: 'payload', base: 'transport', offset: 13, length: 1, dreg: 0 },
      { kind: 'bitwise', sreg: 0, dreg: 0, length: 1, mask: asBytes(bits(all)), xor: asBytes('\0') },
      { kind: 'cmp', op: 'eq', sreg: 0, value: asBytes(bits(flags)) },
    ],
  }
}

/** Behind a match on TCP. */
export const tcpSequenceIsZero: Piece = {
  text: 'tcp sequence 0',
  expressions: [
    { kind: 'payload', base: 'transport', offset: 4, length: 4, dreg: 0 },
    { kind: 'cmp', op: 'eq', sreg: 0, value: ZERO },
  ],
}

export function isIcmp(family: Family): Piece {
  return {
    text: family === 4 ? 'meta l4proto icmp' : 'meta l4proto ipv6-icmp',
    expressions: [protocol.load(0), { kind: 'cmp', op: 'eq', sreg: 0, value: icmpNumber(family) }],
  }
}

/** The number of ICMP or ICMPv6. */
export function icmpNumber(family: Family): Bytes {
  return family === 4 ? asBytes('\x01') : asBytes('\x3a')
}

/** A ping. Behind {@link isIcmp}. */
export function isEchoRequest(family: Family): Piece {
  const type = family === 4 ? ICMP_ECHO : ICMPV6_ECHO_REQUEST
  return {
    text: `${family === 4 ? 'icmp' : 'icmpv6'} type echo-request`,
    expressions: [
      { kind: 'payload', base: 'transport', offset: 0, length: 1, dreg: 0 },
      { kind: 'cmp', op: 'eq', sreg: 0, value: bytesOf(type) },
    ],
  }
}

/** An ICMP error: the destination cannot be reached. Behind {@link isIcmp}. */
export function isUnreachable(family: Family): Piece {
  const type = family === 4 ? ICMP_DEST_UNREACH : ICMPV6_DEST_UNREACH
  return {
    text: `${family === 4 ? 'icmp' : 'icmpv6'} type destination-unreachable`,
    expressions: [
      { kind: 'payload', base: 'transport', offset: 0, length: 1, dreg: 0 },
      { kind: 'cmp', op: 'eq', sreg: 0, value: bytesOf(type) },
    ],
  }
}

/** The packet that an ICMP error is about, quoted behind 8 bytes of ICMP, is TCP. (IPv6: without extension headers.) */
export function isAboutTcp(family: Family): Piece {
  const offset = 8 + (family === 4 ? 9 : 6)
  return {
    text: `@th,${offset * 8},8 ${PROTOCOL_NUMBERS.TCP}`,
    expressions: [
      { kind: 'payload', base: 'transport', offset, length: 1, dreg: 0 },
      { kind: 'cmp', op: 'eq', sreg: 0, value: bytesOf(PROTOCOL_NUMBERS.TCP) },
    ],
  }
}

/** Matches the packets above so many per second. */
export function isOverRate(perSecond: number, burst: number): Piece {
  return {
    text: `limit rate over ${perSecond}/second burst ${burst} packets`,
    expressions: [{ kind: 'limit', perSecond, burst, over: true }],
  }
}

/** Matches new connections while more than so many are open. */
export function isOverOpen(most: number): Piece {
  return { text: `ct count over ${most}`, expressions: [overOpen(most)] }
}

/** The same for each key by itself, in a dynamic set without times. Does not match what the set has no room for. */
export function isOverOpenOf(set: string, key: Operand, most: number): Piece {
  return {
    text: `add @${set} { ${key.text} ct count over ${most} }`,
    expressions: [key.load(0), { kind: 'dynset', op: 'add', set, keyReg: 0, limits: overOpen(most) }],
  }
}

/** The same as {@link isOverRate} for each key by itself. Does not match what the set has no room for. */
export function isOverRateOf(set: string, key: Operand, { perSecond, seconds }: KeyedRate): Piece {
  const limits = { kind: 'limit', perSecond, burst: perSecond, over: true } as const
  const { text } = isOverRate(perSecond, perSecond)
  return {
    text: `update @${set} { ${key.text} timeout ${formatSeconds(seconds)} ${text} }`,
    expressions: [key.load(0), { kind: 'dynset', op: 'update', set, keyReg: 0, timeoutMs: seconds * 1000, limits }],
  }
}

export interface KeyedRate {
  readonly perSecond: number
  /** How long a key is remembered after its last packet. */
  readonly seconds: number
}

export function isMarked(mark: number): Piece {
  return flagMatch(`meta mark and ${hex(mark)} != 0`, { kind: 'meta', key: 'mark', dreg: 0 }, mark)
}

// ---- statements

export const counter: Piece = {
  text: 'counter',
  expressions: [{ kind: 'counter', packets: 0n, bytes: 0n }],
}

export function addMark(mark: number): Piece {
  return changeMark(`meta mark set meta mark or ${hex(mark)}`, ~mark >>> 0, mark)
}

/** Flips the bits; behind isMarked it clears them. */
export function flipMark(mark: number): Piece {
  return changeMark(`meta mark set meta mark xor ${hex(mark)}`, 0xffffffff, mark)
}

/** From here on the kernel reports which rules the packet meets. */
export const traced: Piece = {
  text: 'meta nftrace set 1',
  expressions: [
    { kind: 'immediate', dreg: 0, value: asBytes('\x01') },
    { kind: 'metaSet', key: 'nftrace', sreg: 0 },
  ],
}

export function jump(chain: string): Piece {
  return { text: `jump ${chain}`, expressions: [{ kind: 'verdict', code: 'jump', chain }] }
}

export function goto(chain: string): Piece {
  return { text: `goto ${chain}`, expressions: [{ kind: 'verdict', code: 'goto', chain }] }
}

export const drop: Piece = { text: 'drop', expressions: [{ kind: 'verdict', code: 'drop' }] }
export const goBack: Piece = { text: 'return', expressions: [{ kind: 'verdict', code: 'return' }] }

/** Refuses with ICMP port unreachable. */
export function reject(family: Family): Piece {
  const code = family === 4 ? ICMP_PORT_UNREACH : ICMPV6_PORT_UNREACH
  return { text: 'reject', expressions: [{ kind: 'reject', type: NFT_REJECT_ICMP_UNREACH, code }] }
}

/** Refuses with a TCP reset. Behind a match on TCP. */
export const rejectWithReset: Piece = {
  text: 'reject with tcp reset',
  expressions: [{ kind: 'reject', type: NFT_REJECT_TCP_RST, code: 0 }],
}

export const masquerade: Piece = {
  text: 'masquerade fully-random',
  expressions: [{ kind: 'masq', flags: NF_NAT_RANGE_PROTO_RANDOM_FULLY }],
}

/** Goes where the verdict map says; goes on when it says nothing. */
export function verdictFrom(operands: readonly Operand[], map: string): Piece {
  return {
    text: `${concat(operands)} vmap @${map}`,
    expressions: [...loadAll(operands), { kind: 'lookup', set: map, sreg: 0, dreg: 'verdict' }],
  }
}

/** Sends the connection to the `address . port` that the map has for the key; goes on when it has none. */
export function dnatTo(family: Family, operands: readonly Operand[], map: string): Piece {
  const ip = nftFamily(family)
  return {
    text: `dnat ${ip} to ${concat(operands)} map @${map}`,
    expressions: [
      ...loadAll(operands),
      { kind: 'lookup', set: map, sreg: 0, dreg: 0 },
      { kind: 'nat', type: 'dnat', family: ip, addrMin: 0, protoMin: addressWords(family), flags: 0 },
    ],
  }
}

/** Sends the packet to this address, and to the port that it had. */
export function dnatToAddress(family: Family, address: string): Piece {
  return {
    text: `dnat to ${address}`,
    expressions: [
      { kind: 'immediate', dreg: 0, value: ipBytes(address) },
      { kind: 'nat', type: 'dnat', family: nftFamily(family), addrMin: 0, flags: 0 },
    ],
  }
}

/** Puts `key : value` into a dynamic map for a while; an entry that is there only lives longer. */
export function updateMap(map: string, entry: { key: Operand; value: readonly Operand[]; seconds: number }): Piece {
  // nft gives the value the next 128-bit register.
  const dataReg = Math.ceil(entry.key.words / 4) * 4
  return {
    text: `update @${map} { ${entry.key.text} timeout ${formatSeconds(entry.seconds)} : ${concat(entry.value)} }`,
    expressions: [
      entry.key.load(0),
      ...loadAll(entry.value, dataReg),
      { kind: 'dynset', op: 'update', set: map, keyReg: 0, dataReg, timeoutMs: entry.seconds * 1000 },
    ],
  }
}

/** Puts the key into a dynamic set for a while; one that is there stays as long as it would have. Does not match when the set is full. */
export function addToSet(set: string, key: readonly Operand[], timeoutMs: number): Piece {
  const time = timeoutMs % 1000 === 0 ? formatSeconds(timeoutMs / 1000) : `${timeoutMs}ms`
  return {
    text: `add @${set} { ${concat(key)} timeout ${time} }`,
    expressions: [...loadAll(key), { kind: 'dynset', op: 'add', set, keyReg: 0, timeoutMs }],
  }
}

/** Takes the key out of a dynamic set. */
export function deleteFromSet(set: string, key: readonly Operand[]): Piece {
  return {
    text: `delete @${set} { ${concat(key)} }`,
    expressions: [...loadAll(key), { kind: 'dynset', op: 'delete', set, keyReg: 0 }],
  }
}

/** Sends a copy of the packet to the program that listens to the group. */
export function logTo(group: number, snaplen: number): Piece {
  return { text: `log group ${group} snaplen ${snaplen}`, expressions: [{ kind: 'log', group, snaplen }] }
}

// ---- helpers

function overOpen(most: number): Extract<Expression, { kind: 'connlimit' }> {
  return { kind: 'connlimit', most, over: true }
}

function concat(operands: readonly Operand[]): string {
  return operands.map((operand) => operand.text).join(' . ')
}

function loadAll(operands: readonly Operand[], first = 0): Expression[] {
  let dreg = first
  return operands.flatMap(({ load, words, mask, hash }) => {
    const at = dreg
    dreg += words
    if (hash !== undefined) return loadHash(hash, at, first + wordsOf(operands))
    return mask === undefined ? [load(at)] : [load(at), masked(at, mask)]
  })
}

export function loadNoHash(): never {
  throw new Error('Cannot load a hash alone: it needs registers for its operands')
}

/** `behind`: the first register that the key does not need. nft keeps four more for the address that it is looked up for. */
export function loadHash({ operands, modulus, seed }: HashedOperands, dreg: number, behind: number): Expression[] {
  const sreg = behind + 4
  let at = sreg
  const loads = operands.map(({ words, load }) => {
    at += words
    return load(at - words)
  })
  return [...loads, { kind: 'hash', sreg, length: (at - sreg) * 4, seed, modulus, dreg }]
}

function wordsOf(operands: readonly Operand[]): number {
  return operands.reduce((sum, { words }) => sum + words, 0)
}

function masked(register: number, mask: Bytes): Expression {
  const { length } = mask
  return { kind: 'bitwise', sreg: register, dreg: register, length, mask, xor: asBytes('\0'.repeat(length)) }
}

function networkField(text: string, family: Family, offset: number): Operand {
  const length = family === 4 ? 4 : 16
  return { text, words: length / 4, load: (dreg) => ({ kind: 'payload', base: 'network', offset, length, dreg }) }
}

function addressWords(family: Family): number {
  return family === 4 ? 1 : 4
}

function ct(key: CtKey, dreg: number, direction?: 'original'): Expression {
  return direction === undefined ? { kind: 'ct', key, dreg } : { kind: 'ct', key, direction, dreg }
}

/** `value & flags != 0`; with 'eq': `== 0`. */
function flagMatch(text: string, load: Expression, flags: number, op: 'eq' | 'neq' = 'neq'): Piece {
  return {
    text,
    expressions: [
      load,
      { kind: 'bitwise', sreg: 0, dreg: 0, length: 4, mask: host32(flags), xor: ZERO },
      { kind: 'cmp', op, sreg: 0, value: ZERO },
    ],
  }
}

function changeMark(text: string, mask: number, xor: number): Piece {
  return {
    text,
    expressions: [
      { kind: 'meta', key: 'mark', dreg: 0 },
      { kind: 'bitwise', sreg: 0, dreg: 0, length: 4, mask: host32(mask), xor: host32(xor) },
      { kind: 'metaSet', key: 'mark', sreg: 0 },
    ],
  }
}

function hex(value: number): string {
  return `0x${value.toString(16).padStart(8, '0')}`
}

function formatSeconds(seconds: number): string {
  return `${seconds}s`
}
