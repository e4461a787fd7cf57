// A packet through a table: what the kernel's virtual machine would do, rule by rule, and why.
//
// `explain` shows it, and tests hold it against what the model decided and against real packets.

import { decodeHost32, host32 } from '../lib/endian.ts'
import { jhash, scaleHash } from '../lib/jhash.ts'
import { type Bytes, formatIp, asBytes, bytesOf } from '../lib/ip.ts'
import type { Host, Packet, PacketWalk, Station } from '../packet-walk/types.ts'
import { FIELD_BYTES, PROTOCOL_NUMBERS, splitFields, decodePort } from './fields.ts'
import { ICMP_ECHO, ICMPV6_ECHO_REQUEST, icmpNumber } from './language.ts'
import type { Chain, Element, Expression, Hook, Jump, NftSet, Rule, TableOutline } from './types.ts'

/** A table as far as packets look into it. */
export interface WalkedTable extends TableOutline {
  readonly elements: { get(set: string): WalkedElements | undefined }
}

export interface WalkedElements {
  get(key: Bytes): Element | undefined
  values(): Iterable<Element>
}

export interface Environment extends Host {
  /** Dynamic elements, by set name and key; written to by packets. */
  readonly dynamicElements: Map<string, Map<Bytes, DynamicElement>>
}

export interface DynamicElement {
  readonly data: Bytes
  readonly expiresMs: number
}

export type Walk = PacketWalk<Step>

/** A rule that matched. */
export interface Step {
  readonly hook: Hook['hook']
  readonly chain: string
  readonly rule: Rule
  /** What it found in sets and maps. */
  readonly found: readonly Found[]
}

export interface Found {
  readonly set: NftSet
  readonly element: Element
  /** When a dynamic element is forgotten, on the clock of the environment. */
  readonly expiresMs?: number | undefined
}

/** Sends the packet through all hooks that it meets. No more than one station takes it. */
export function walkTable(
  table: WalkedTable,
  packet: Packet,
  environment: Environment,
  stations: readonly Station[] = [],
): Walk {
  const machine = new Machine(table, packet, environment)
  for (const hook of machine.path()) {
    machine.hook = hook
    const stops = [...hookedChains(table, hook), ...stations.filter((station) => station.hook === hook)]
    for (const stop of stops.sort((a, b) => priorityOf(a) - priorityOf(b))) {
      const verdict = 'meet' in stop ? machine.stopAt(stop) : machine.runBaseChain(stop)
      if (verdict === 'sent') break
      if (verdict !== 'accept') return machine.result(verdict)
    }
  }
  return machine.result('accept')
}

function hookedChains(table: WalkedTable, hook: Hook['hook']): Chain[] {
  return [...table.chains.values()].filter((chain) => chain.hook?.hook === hook)
}

function priorityOf(stop: Chain | Station): number {
  return 'meet' in stop ? stop.priority : stop.hook!.priority
}

type Verdict = 'accept' | 'drop' | 'reject'
/** What the evaluation of a rule leads to; undefined: the next rule. */
type Outcome = Verdict | 'return' | Jump | undefined

class Machine {
  readonly #table: WalkedTable
  readonly #packet: Packet
  readonly #environment: Environment
  readonly #registers = Array.from({ length: 16 }, (): Bytes => asBytes('\0\0\0\0'))
  readonly #steps: Step[] = []
  /** Of the rule that is being evaluated. */
  #found: Found[] = []
  /** Where the packet is. */
  hook: Hook['hook'] = 'prerouting'
  #destination: Bytes
  #destinationPort: number
  #translated = false
  /** By a station. The connection tracker does not call that a translation. */
  #taken = false
  /** Whether the station's packet is on its way out of the machine again. */
  #isResent = false
  #masqueraded = false
  #mark = 0

  constructor(table: WalkedTable, packet: Packet, environment: Environment) {
    this.#table = table
    this.#packet = packet
    this.#environment = environment
    this.#destination = packet.destination
    this.#destinationPort = packet.destinationPort
  }

  /** The hooks in order. Where the packet is routed depends on the destination that it has by then. */
  *path(): Generator<Hook['hook']> {
    const sentHere = this.#packet.inputInterface === undefined
    yield sentHere ? 'output' : 'prerouting'
    const staysHere = this.#environment.isLocalAddress(this.#destination)
    if (!sentHere) yield staysHere ? 'input' : 'forward'
    if (this.#isResent) yield 'output'
    if (sentHere || !staysHere || this.#isResent) yield 'postrouting'
    if (sentHere && staysHere) yield 'input'
  }

  stopAt(station: Station): Verdict | 'sent' {
    if (this.#taken) return 'accept'
    const { source, protocol } = this.#packet
    const taken = station.meet({
      source,
      protocol,
      destination: this.#destination,
      destinationPort: this.#destinationPort,
    })
    if (taken === undefined) return 'accept'
    const text = taken.kind === 'send' ? `to ${formatIp(taken.destination)} port ${taken.destinationPort}` : taken.kind
    const rule = { text, comment: undefined, expressions: [] }
    this.#steps.push({ hook: this.hook, chain: station.name, rule, found: [] })
    if (taken.kind === 'reject') return 'reject'
    this.#taken = true
    this.#destination = taken.destination
    this.#destinationPort = taken.destinationPort
    if (this.#environment.isLocalAddress(taken.destination)) return 'accept'
    this.#isResent = true
    return 'sent'
  }

  runBaseChain(chain: Chain): Verdict {
    // Whether and where to a connection is translated is decided once, where it enters the machine or begins.
    if (this.#isResent && chain.hook?.type === 'nat' && chain.hook.hook === 'output') return 'accept'
    const outcome = this.#run(chain)
    if (outcome !== undefined && outcome !== 'return' && typeof outcome !== 'object') return outcome
    if (chain.hook?.policy !== 'drop') return 'accept'
    const rule = { text: 'policy drop', comment: undefined, expressions: [] }
    this.#steps.push({ hook: this.hook, chain: chain.name, rule, found: [] })
    return 'drop'
  }

  result(verdict: Verdict): Walk {
    return {
      verdict,
      destination: this.#destination,
      destinationPort: this.#destinationPort,
      translated: this.#translated || this.#taken,
      masqueraded: this.#masqueraded,
      steps: this.#steps,
    }
  }

  #run(chain: Chain): Outcome {
    for (const rule of chain.rules) {
      const outcome = this.#evaluate(chain, rule)
      if (outcome === undefined) continue
      if (typeof outcome === 'string') return outcome === 'return' ? undefined : outcome
      const target = this.#table.chains.get(outcome.chain)
      if (target === undefined) throw new Error(`Cannot ${outcome.code} to ${outcome.chain}: no such chain`)
      const inner = this.#run(target)
      if (inner !== undefined || outcome.code === 'goto') return inner
    }
    return undefined
  }

  #evaluate(chain: Chain, rule: Rule): Outcome {
    this.#found = []
    for (const expression of rule.expressions) {
      const outcome = this.#execute(expression)
      if (outcome === 'next') continue
      if (outcome === 'break') return undefined
      this.#met(chain, rule)
      return outcome
    }
    this.#met(chain, rule)
    return undefined
  }

  #met(chain: Chain, rule: Rule): void {
    this.#steps.push({ hook: this.hook, chain: chain.name, rule, found: this.#found })
  }

  /** 'next': the next expression; 'break': the rule does not match. */
  #execute(e: Expression): 'next' | 'break' | Exclude<Outcome, undefined> {
    switch (e.kind) {
      case 'payload':
      case 'meta':
      case 'ct':
      case 'fib':
      case 'numgen':
      case 'hash':
      case 'immediate':
        this.#store(e.dreg, this.#load(e))
        return 'next'
      case 'cmp': {
        const equal = this.#fetch(e.sreg, e.value.length) === e.value
        return equal === (e.op === 'eq') ? 'next' : 'break'
      }
      case 'bitwise':
        this.#store(e.dreg, bitwise(this.#fetch(e.sreg, e.length), e.mask, e.xor))
        return 'next'
      case 'lookup':
        return this.#lookup(e)
      case 'metaSet':
        if (e.key === 'mark') this.#mark = decodeHost32(this.#fetch(e.sreg, 4))
        return 'next'
      case 'dynset':
        return this.#update(e)
      case 'verdict':
        return 'chain' in e ? e : e.code
      case 'nat':
        this.#destination = this.#fetch(e.addrMin, e.family === 'ip' ? 4 : 16)
        if (e.protoMin !== undefined) this.#destinationPort = decodePort(this.#fetch(e.protoMin, 2))
        this.#translated = true
        return 'accept'
      case 'masq':
        this.#masqueraded = true
        return 'accept'
      case 'reject':
        return 'reject'
      case 'counter':
        return 'next'
      case 'limit':
      case 'connlimit':
        // The walked packet is the only one: over no limit.
        return e.over ? 'break' : 'next'
      case 'byteorder':
      case 'redir':
      case 'log':
      case 'unknown':
        if (e.kind === 'byteorder' && e.length < e.size) return 'next'
        throw new Error(`Cannot walk through an expression of kind ${e.kind}`)
    }
  }

  #load(e: Expression): Bytes {
    const packet = this.#packet
    switch (e.kind) {
      case 'payload':
        if (e.base === 'network') return this.#networkHeader(e.offset, e.length)
        if (e.offset === 0) return e.length === 1 ? this.#icmpType() : port(this.#packet.sourcePort)
        return port(this.#destinationPort)
      case 'meta':
        if (e.key === 'mark') return host32(this.#mark)
        if (e.key === 'l4proto') return this.#protocol()
        return asBytes((packet.inputInterface ?? '').padEnd(16, '\0'))
      case 'ct':
        return this.#conntrack(e.key)
      case 'fib': {
        const address = e.source === 'saddr' ? packet.source : this.#destination
        return host32(this.#environment.isLocalAddress(address) ? RTN_LOCAL : RTN_UNICAST)
      }
      case 'numgen':
        return host32(e.offset + this.#environment.random(e.modulus))
      case 'hash':
        return host32(scaleHash(jhash(this.#fetch(e.sreg, e.length), e.seed), e.modulus))
      case 'immediate':
        return e.value
      default:
        throw new Error(`Cannot load ${e.kind}`)
    }
  }

  #protocol(): Bytes {
    const { protocol, source } = this.#packet
    return protocol === 'ICMP' ? icmpNumber(source.length === 4 ? 4 : 6) : bytesOf(PROTOCOL_NUMBERS[protocol])
  }

  /** Of a ping: no other ICMP begins anything. nft says no more of the protocol than that a rule asks for this. */
  #icmpType(): Bytes {
    if (this.#packet.protocol !== 'ICMP') return bytesOf(0)
    return bytesOf(this.#packet.source.length === 4 ? ICMP_ECHO : ICMPV6_ECHO_REQUEST)
  }

  #networkHeader(offset: number, length: number): Bytes {
    const ipv4 = this.#packet.source.length === 4
    const sourceAt = ipv4 ? 12 : 8
    const header = '\0'.repeat(sourceAt) + this.#packet.source + this.#destination
    return asBytes(header.slice(offset, offset + length))
  }

  #conntrack(key: string): Bytes {
    switch (key) {
      case 'state':
        return host32(CT_STATE_NEW)
      case 'status':
        return host32(this.#translated ? IPS_DST_NAT : 0)
      case 'dstIp':
      case 'dstIp6':
        return this.#packet.destination
      case 'protoDst':
        return port(this.#packet.destinationPort)
      default:
        throw new Error(`Cannot load ct ${key}`)
    }
  }

  #lookup(e: Extract<Expression, { kind: 'lookup' }>): 'next' | 'break' | Exclude<Outcome, undefined> {
    const set = this.#table.sets.get(e.set)
    if (set === undefined) throw new Error(`Cannot look up in ${e.set}: no such set`)
    const found = this.#find(set, this.#fetch(e.sreg, keyLength(set)))
    if ((found !== undefined) === (e.invert === true)) return 'break'
    if (found !== undefined) this.#found.push({ set, ...found })
    if (e.dreg === undefined || found === undefined) return 'next'
    const { verdict, ends, data } = found.element
    if (e.dreg === 'verdict') return verdict ?? ends ?? 'break'
    this.#store(e.dreg, data!)
    return 'next'
  }

  #find(set: NftSet, key: Bytes): Omit<Found, 'set'> | undefined {
    if (set.dynamic) {
      const entry = this.#environment.dynamicElements.get(set.name)?.get(key)
      if (entry === undefined || entry.expiresMs <= this.#environment.now()) return undefined
      const { data, expiresMs } = entry
      return { element: data === '' ? { key } : { key, data }, expiresMs }
    }
    const elements = this.#table.elements.get(set.name)
    const element = set.interval
      ? [...(elements?.values() ?? [])].find((each) => inRange(set, each, key))
      : elements?.get(key)
    return element && { element }
  }

  #update(e: Extract<Expression, { kind: 'dynset' }>): 'next' | 'break' {
    // The walked packet is the only one: over no limit.
    if (e.limits?.over === true) return 'break'
    const set = this.#table.sets.get(e.set)!
    let entries = this.#environment.dynamicElements.get(e.set)
    if (entries === undefined) this.#environment.dynamicElements.set(e.set, (entries = new Map()))
    const key = this.#fetch(e.keyReg, keyLength(set))
    const length = Array.isArray(set.data) ? fieldsLength(set.data) : 0
    const nowMs = this.#environment.now()
    if (e.op === 'delete') {
      entries.delete(key)
      return 'next'
    }
    const present = entries.get(key)
    // An entry that is there keeps its value: the kernel only lets it live longer.
    const data = present !== undefined && present.expiresMs > nowMs ? present.data : this.#fetch(e.dataReg ?? 0, length)
    entries.set(key, { data, expiresMs: nowMs + (e.timeoutMs ?? set.timeoutMs ?? Infinity) })
    return 'next'
  }

  /** Registers are words of 4 bytes; a value fills as many as it needs, the last one padded. */
  #store(register: number, value: Bytes): void {
    for (let i = 0; i < value.length; i += 4) this.#registers[register + i / 4] = value.slice(i, i + 4).padEnd(4, '\0')
  }

  #fetch(register: number, length: number): Bytes {
    return asBytes(
      this.#registers
        .slice(register, register + Math.ceil(length / 4))
        .join('')
        .slice(0, length),
    )
  }
}

const RTN_UNICAST = 1
const RTN_LOCAL = 2
const CT_STATE_NEW = 1 << 3
const IPS_DST_NAT = 1 << 5

function bitwise(value: Bytes, mask: Bytes, xor: Bytes): Bytes {
  let out = ''
  for (let i = 0; i < value.length; i++) {
    out += String.fromCharCode((value.charCodeAt(i) & mask.charCodeAt(i)) ^ xor.charCodeAt(i))
  }
  return asBytes(out)
}

function inRange(set: NftSet, element: Element, key: Bytes): boolean {
  const from = splitFields(set.key, element.key)
  const to = splitFields(set.key, element.keyEnd ?? element.key)
  return splitFields(set.key, key).every((field, i) => field >= from[i]! && field <= to[i]!)
}

function keyLength(set: NftSet): number {
  return fieldsLength(set.key)
}

function fieldsLength(types: NftSet['key']): number {
  return types.reduce((sum, type) => sum + FIELD_BYTES[type], 0)
}

function port(number: number): Bytes {
  return bytesOf(number >> 8, number & 0xff)
}
