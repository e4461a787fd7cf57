// A table that was read back, listed or planned, for packets to walk through on paper.

import type { KernelStep, KernelWay, MachineAround, Walkable, WalkedPacket } from '../lib/packet-walk.ts'
import { describeRule } from './describe-rule.ts'
import { formatFields, PROTOCOL_NUMBERS } from './fields.ts'
import { formatElement } from './format.ts'
import {
  type Found,
  type LearnedElement,
  type Packet,
  type Step,
  type Surroundings,
  type Walk,
  type WalkedTable,
  walkTable,
} from './walk.ts'

export type Learned = ReadonlyMap<string, ReadonlyMap<string, LearnedElement>>

export function walkableTable(table: WalkedTable, learned: Learned): Walkable {
  return {
    what: `table ${table.family} ${table.name}`,
    walk: (packet, around) => wayOf(table.name, walkTable(table, packetOf(packet), surroundingsOf(around, learned))),
  }
}

export function packetOf({ protocol, ...rest }: WalkedPacket): Packet {
  return { ...rest, protocol: PROTOCOL_NUMBERS[protocol] }
}

/** Packets write to what was learned; each walk gets a copy of its own. */
export function surroundingsOf(around: MachineAround, learned: Learned): Surroundings {
  return { ...around, learned: new Map(Array.from(learned, ([set, elements]) => [set, new Map(elements)])) }
}

export function wayOf(table: string, walk: Walk): KernelWay {
  const remembered = walk.steps.flatMap(({ found }) => found).find(({ expiresMs }) => expiresMs !== undefined)
  const { steps, ...end } = walk
  return {
    ...end,
    // Words are made when they are asked for: of many ways, few are shown.
    get steps() {
      return steps.map((step) => stepOf(table, step))
    },
    ...(remembered === undefined
      ? {}
      : { remembered: { endpoint: endpointOf(remembered), expiresMs: remembered.expiresMs! } }),
  }
}

function stepOf(table: string, { hook, chain, rule, found }: Step): KernelStep {
  const counter = rule.expressions.find((each) => each.kind === 'counter')
  return {
    hook,
    place: chain === 'IPVS' ? chain : `${table} ${chain}`,
    rule: describeRule(rule),
    comment: rule.comment,
    found: found.map(({ set, element }) => `${set.name}: ${formatElement(set, element)}`),
    ...(counter === undefined ? {} : { counted: { packets: counter.packets, bytes: counter.bytes } }),
  }
}

/** The value of an affinity map is the endpoint; a set has none. */
function endpointOf({ set, element }: Found): string | undefined {
  if (element.data === undefined || set.data === undefined || set.data === 'verdict') return undefined
  const [address, port] = formatFields(set.data, element.data).split(' . ')
  return port === undefined ? address : `${address?.includes(':') === true ? `[${address}]` : address}:${port}`
}
