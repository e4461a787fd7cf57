// Operands and values of nft's JSON: what is loaded into registers, and what it is compared with.

import { host32 } from '../lib/endian.ts'
import { type Bytes, cidrEnd, parseCidr, parseIp, asBytes, bytesOf } from '../lib/ip.ts'
import { PROTOCOL_NUMBERS } from './fields.ts'
import { ICMP_ECHO, ICMPV6_ECHO_REQUEST, type HashedOperands, loadNoHash } from './language.ts'
import type { Expression, FieldType, NftFamily } from './types.ts'

export type Json = unknown
export type JsonRecord = Readonly<Record<string, Json>>

/** What a register can hold: the fields of sets, and what is only compared. */
export type OperandType =
  | FieldType
  | 'mark'
  | 'ifname'
  | 'ct_state'
  | 'ct_status'
  | 'fib_type'
  | 'icmp_type'
  | 'icmpv6_type'

export interface JsonOperand {
  readonly type: OperandType
  readonly words: number
  readonly load: (dreg: number) => Expression
  /** Only these bits of what was loaded count. */
  readonly mask?: Bytes
  /** What it is computed from; then load() is not for it. */
  readonly hash?: HashedOperands
}

/** Undefined for what no rule of a proxy has. */
export function operandsOf(json: Json, family: NftFamily): JsonOperand[] | undefined {
  const concat = recordOf(json)['concat']
  const parts = Array.isArray(concat) ? concat : [json]
  const operands = parts.map((part) => operandOf(recordOf(part), family))
  return operands.every((each) => each !== undefined) ? operands : undefined
}

function operandOf(json: JsonRecord, family: NftFamily): JsonOperand | undefined {
  const masked = json['&']
  if (Array.isArray(masked)) return maskedOperand(operandOf(recordOf(masked[0]), family), parseIp(String(masked[1])))
  const payload = recordOf(json['payload'])
  if (typeof payload['field'] === 'string') return payloadOperand(`${String(payload['protocol'])} ${payload['field']}`)
  const meta = recordOf(json['meta'])['key']
  if (meta === 'l4proto')
    return { type: 'inet_proto', words: 1, load: (dreg) => ({ kind: 'meta', key: 'l4proto', dreg }) }
  if (meta === 'mark') return { type: 'mark', words: 1, load: (dreg) => ({ kind: 'meta', key: 'mark', dreg }) }
  if (meta === 'iifname') return { type: 'ifname', words: 4, load: (dreg) => ({ kind: 'meta', key: 'iifname', dreg }) }
  const ct = recordOf(json['ct'])
  if (typeof ct['key'] === 'string') return ctOperand(ct['key'], family)
  const fib = recordOf(json['fib'])
  if (fib['result'] === 'type') {
    const source = listOf(fib['flags']).includes('saddr') ? 'saddr' : 'daddr'
    return { type: 'fib_type', words: 1, load: (dreg) => ({ kind: 'fib', source, result: 'type', dreg }) }
  }
  const numgen = recordOf(json['numgen'])
  if (typeof numgen['mod'] === 'number') {
    const { mod: modulus, offset } = numgen as { mod: number; offset?: number }
    return {
      type: 'integer',
      words: 1,
      load: (dreg) => ({ kind: 'numgen', type: 'random', modulus, offset: offset ?? 0, dreg }),
    }
  }
  const jhash = recordOf(json['jhash'])
  const hashed = jhash['expr'] === undefined ? undefined : operandsOf(jhash['expr'], family)
  if (hashed !== undefined && typeof jhash['mod'] === 'number' && typeof jhash['seed'] === 'number') {
    const hash = { operands: hashed, modulus: jhash['mod'], seed: jhash['seed'] }
    return { type: 'integer', words: 1, load: loadNoHash, hash }
  }
  return undefined
}

/** An address of which only some bits count. */
function maskedOperand(operand: JsonOperand | undefined, mask: Bytes | undefined): JsonOperand | undefined {
  return operand === undefined || mask?.length !== operand.words * 4 ? undefined : { ...operand, mask }
}

function payloadOperand(field: string): JsonOperand | undefined {
  const address = (type: 'ipv4_addr' | 'ipv6_addr', offset: number): JsonOperand => {
    const length = type === 'ipv4_addr' ? 4 : 16
    return {
      type,
      words: length / 4,
      load: (dreg) => ({ kind: 'payload', base: 'network', offset, length, dreg }),
    }
  }
  switch (field) {
    case 'ip saddr':
      return address('ipv4_addr', 12)
    case 'ip daddr':
      return address('ipv4_addr', 16)
    case 'ip6 saddr':
      return address('ipv6_addr', 8)
    case 'ip6 daddr':
      return address('ipv6_addr', 24)
  }
  if (field === 'icmp type' || field === 'icmpv6 type') {
    const load = (dreg: number): Expression => ({ kind: 'payload', base: 'transport', offset: 0, length: 1, dreg })
    return { type: field === 'icmp type' ? 'icmp_type' : 'icmpv6_type', words: 1, load }
  }
  if (!field.endsWith(' dport')) return undefined
  return {
    type: 'inet_service',
    words: 1,
    load: (dreg) => ({ kind: 'payload', base: 'transport', offset: 2, length: 2, dreg }),
  }
}

function ctOperand(key: string, family: NftFamily): JsonOperand | undefined {
  switch (key) {
    case 'state':
      return { type: 'ct_state', words: 1, load: (dreg) => ({ kind: 'ct', key: 'state', dreg }) }
    case 'status':
      return { type: 'ct_status', words: 1, load: (dreg) => ({ kind: 'ct', key: 'status', dreg }) }
    case 'proto-dst':
      return {
        type: 'inet_service',
        words: 1,
        load: (dreg) => ({ kind: 'ct', key: 'protoDst', direction: 'original', dreg }),
      }
    case 'daddr':
    case 'ip daddr':
    case 'ip6 daddr': {
      const isV4 = family === 'ip'
      return {
        type: isV4 ? 'ipv4_addr' : 'ipv6_addr',
        words: isV4 ? 1 : 4,
        load: (dreg) => ({ kind: 'ct', key: isV4 ? 'dstIp' : 'dstIp6', direction: 'original', dreg }),
      }
    }
  }
  return undefined
}

const FLAGS: Readonly<Record<string, number>> = {
  invalid: 1,
  established: 2,
  related: 4,
  new: 8,
  confirmed: 8,
  dnat: 32,
  snat: 16,
}

/** The bits of `new`, `established,related`, `dnat`. */
export function flagsOf(json: Json): number {
  const inSet = listOf(recordOf(json)['set'])
  const names = Array.isArray(json) ? listOf(json) : inSet.length > 0 ? inSet : [json]
  let bits = 0
  for (const name of names) bits |= FLAGS[String(name)] ?? 0
  return bits
}

/** One value of a type, in the layout of a register; undefined when it is none. */
export function valueOf(type: OperandType, json: Json): Bytes | undefined {
  switch (type) {
    case 'ipv4_addr':
    case 'ipv6_addr':
      return parseIp(String(json))
    case 'inet_proto': {
      const number = PROTOCOL_NUMBERS[String(json).toUpperCase() as keyof typeof PROTOCOL_NUMBERS] ?? Number(json)
      return Number.isInteger(number) ? bytesOf(number) : undefined
    }
    case 'inet_service':
      return typeof json === 'number' ? bytesOf(json >> 8, json & 0xff) : undefined
    case 'integer':
    case 'mark':
      return typeof json === 'number' ? host32(json) : undefined
    case 'ifname': {
      const name = String(json)
      return name.endsWith('*') ? asBytes(name.slice(0, -1)) : asBytes(name.padEnd(16, '\0'))
    }
    case 'icmp_type':
    case 'icmpv6_type':
      if (json !== 'echo-request') return undefined
      return bytesOf(type === 'icmp_type' ? ICMP_ECHO : ICMPV6_ECHO_REQUEST)
    case 'fib_type':
      return host32(json === 'local' ? 2 : 1)
    case 'ct_state':
    case 'ct_status':
      return host32(flagsOf(json))
  }
}

/** A value or a range, from and to. */
export function rangeOf(type: OperandType, json: Json): readonly [Bytes, Bytes] | undefined {
  const { prefix, range } = recordOf(json)
  if (prefix !== undefined) {
    const { addr, len } = recordOf(prefix)
    const cidr = parseCidr(`${String(addr)}/${String(len)}`)
    return cidr && [cidr.network, cidrEnd(cidr)]
  }
  const [first, last] = Array.isArray(range) ? range : [json, json]
  const [from, to] = [valueOf(type, first), valueOf(type, last)]
  return from === undefined || to === undefined ? undefined : [from, to]
}

export function recordOf(json: Json): JsonRecord {
  return typeof json === 'object' && json !== null && !Array.isArray(json) ? (json as JsonRecord) : {}
}

export function listOf(json: Json): readonly Json[] {
  return Array.isArray(json) ? json : []
}
