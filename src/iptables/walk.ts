// A packet through the tables: what the kernel would do, rule by rule.
//
// `explain` shows it, and tests hold it against what the model decided and against real packets.

import { type Bytes, canonicalIp, cidrContains, parseCidr, ipBytes } from '../lib/ip.ts'
import type { AffinityEntry, Host, Packet, PacketWalk } from '../packet-walk/types.ts'
import { parseRule } from './parse.ts'
import type { Match, Rule, RuleText, TableName, Tables, Target } from './types.ts'

export interface Environment extends Host {
  /** Lists of the `recent` match: when a source was noted last, by list. Written to by packets. */
  readonly recent: Map<string, Map<Bytes, number>>
}

export interface Walk extends PacketWalk<Step> {
  /** Affinity is why it goes there, and until when. */
  readonly affinityEntry?: AffinityEntry | undefined
}

/** A rule that matched. */
export interface Step {
  /** The chain of the kernel that it was reached from: `PREROUTING`. */
  readonly hook: string
  readonly table: TableName
  readonly chain: string
  readonly rule: RuleText
}

type Verdict = Walk['verdict']

/** Sends the packet through all chains of the kernel that it meets. */
export function walkTables(tables: Tables, packet: Packet, environment: Environment): Walk {
  const machine = new Machine(tables, packet, environment)
  for (const { table, chain } of machine.path()) {
    machine.hook = chain
    const verdict = machine.run(table, chain) ?? 'accept'
    if (verdict !== 'accept') return machine.result(verdict)
  }
  return machine.result('accept')
}

class Machine {
  readonly #tables: Tables
  readonly #packet: Packet
  readonly #environment: Environment
  readonly #steps: Step[] = []
  /** The chain of the kernel that the packet is in. */
  hook = ''
  #destination: Bytes
  #destinationPort: number
  #translated = false
  #masqueraded = false
  #mark = 0
  #affinityUntilMs: number | undefined

  constructor(tables: Tables, packet: Packet, environment: Environment) {
    this.#tables = tables
    this.#packet = packet
    this.#environment = environment
    this.#destination = packet.destination
    this.#destinationPort = packet.destinationPort
  }

  /** Where the packet is routed depends on the destination that it has by then. */
  *path(): Generator<{ table: TableName; chain: string }> {
    const sentHere = this.#packet.inputInterface === undefined
    if (sentHere) {
      yield { table: 'nat', chain: 'OUTPUT' }
      yield { table: 'filter', chain: 'OUTPUT' }
    } else {
      yield { table: 'nat', chain: 'PREROUTING' }
    }
    const staysHere = this.#environment.isLocalAddress(this.#destination)
    if (!sentHere) yield { table: 'filter', chain: staysHere ? 'INPUT' : 'FORWARD' }
    if (sentHere || !staysHere) yield { table: 'nat', chain: 'POSTROUTING' }
    if (sentHere && staysHere) yield { table: 'filter', chain: 'INPUT' }
  }

  /** Undefined: the packet came to the end of the chain. */
  run(table: TableName, chain: string): Verdict | undefined {
    const rules = this.#tables.get(table)?.get(chain)
    // A target of the kernel that we do not know, as LOG, or a table that nothing has been put into.
    if (rules === undefined) return undefined
    for (const text of rules) {
      const rule = parsed(this.#tables, text)
      if (rule === undefined || !this.#matches(rule)) continue
      this.#steps.push({ hook: this.hook, table, chain, rule: text })
      const { target } = rule
      if (target === undefined) continue
      if (target.kind === 'return') return undefined
      const verdict = target.kind === 'jump' ? this.run(table, target.chain) : this.#act(target)
      if (verdict !== undefined) return verdict
    }
    return undefined
  }

  result(verdict: Verdict): Walk {
    return {
      verdict,
      destination: this.#destination,
      destinationPort: this.#destinationPort,
      translated: this.#translated,
      masqueraded: this.#masqueraded,
      steps: this.#steps,
      ...(this.#affinityUntilMs === undefined
        ? {}
        : { affinityEntry: { endpoint: undefined, expiresMs: this.#affinityUntilMs } }),
    }
  }

  #act(target: Exclude<Target, { kind: 'jump' | 'return' }>): Verdict | undefined {
    switch (target.kind) {
      case 'accept':
      case 'drop':
      case 'reject':
        return target.kind
      case 'setMark':
        this.#mark = ((this.#mark & ~target.mask) ^ target.value) >>> 0
        return undefined
      case 'masquerade':
        this.#masqueraded = true
        return 'accept'
      case 'dnat': {
        const alone = canonicalIp(target.to)
        const [, address = '', port = ''] = /^\[?(.*?)\]?:(\d+)$/.exec(target.to) ?? []
        this.#destination = ipBytes(alone ?? address)
        if (alone === undefined) this.#destinationPort = Number(port)
        this.#translated = true
        return 'accept'
      }
    }
  }

  #matches(rule: Rule): boolean {
    const { source, destination, inputInterface, protocol, matches } = rule
    return (
      (source === undefined || within(this.#packet.source, source.network) !== (source.not === true)) &&
      (destination === undefined || within(this.#destination, destination.network) !== (destination.not === true)) &&
      (inputInterface === undefined || this.#entersBy(inputInterface.name) !== (inputInterface.not === true)) &&
      (protocol === undefined || protocol === this.#protocol()) &&
      matches.every((match) => this.#holds(match))
    )
  }

  #protocol(): string {
    const { protocol, source } = this.#packet
    return protocol === 'ICMP' && source.length > 4 ? 'ipv6-icmp' : protocol.toLowerCase()
  }

  #entersBy(name: string): boolean {
    const entered = this.#packet.inputInterface ?? ''
    return name.endsWith('+') ? entered.startsWith(name.slice(0, -1)) : entered === name
  }

  #holds(match: Match): boolean {
    switch (match.kind) {
      case 'comment':
      case 'count':
      // What there is of ICMP, walked, is a ping.
      case 'isPing':
        return true
      case 'ports':
        return match.destination === undefined || match.destination === this.#destinationPort
      // The walked packet is the only one: over no limit.
      case 'connlimit':
      case 'hashlimit':
        return false
      case 'mark':
        return ((this.#mark & match.mask) >>> 0 === match.value) !== (match.not === true)
      case 'random':
        return this.#environment.random(match.outOf) === 0
      case 'recentSet':
        this.#list(match.list).set(this.#packet.source, this.#environment.now())
        return true
      case 'recentCheck': {
        const notedMs = this.#list(match.list).get(this.#packet.source)
        const untilMs = notedMs === undefined ? undefined : notedMs + match.seconds * 1000
        if (untilMs === undefined || untilMs <= this.#environment.now()) return false
        this.#affinityUntilMs = untilMs
        return true
      }
      case 'conntrack': {
        const holds = match.states.includes('NEW') || (match.states.includes('DNAT') && this.#translated)
        return holds !== (match.not === true)
      }
      case 'isLocal':
        return this.#environment.isLocalAddress(match.side === 'src' ? this.#packet.source : this.#destination)
    }
  }

  #list(name: string): Map<Bytes, number> {
    let list = this.#environment.recent.get(name)
    if (list === undefined) this.#environment.recent.set(name, (list = new Map()))
    return list
  }
}

function within(address: Bytes, network: string): boolean {
  const cidr = parseCidr(network)
  return cidr !== undefined && cidrContains(cidr, address)
}

const parsedRules = new WeakMap<Tables, Map<RuleText, Rule | undefined>>()

/** Rules of other programs are passed by: we do not know what they say. */
function parsed(tables: Tables, text: RuleText): Rule | undefined {
  let rules = parsedRules.get(tables)
  if (rules === undefined) parsedRules.set(tables, (rules = new Map()))
  if (!rules.has(text)) rules.set(text, tryParse(text))
  return rules.get(text)
}

function tryParse(text: RuleText): Rule | undefined {
  try {
    return parseRule(text)
  } catch {
    return undefined
  }
}
