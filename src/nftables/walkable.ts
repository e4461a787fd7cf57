// A table that was read back, listed or planned, for packets to walk through on paper.

import type { Bytes } from '../lib/ip.ts'
import type { Host, KernelStep, KernelWay, Walkable } from '../packet-walk/types.ts'
import { describeRule } from './describe-rule.ts'
import { formatFields } from './fields.ts'
import { formatElement } from './format.ts'
import {
  type Found,
  type DynamicElement,
  type Step,
  type Environment,
  type Walk,
  type WalkedTable,
  walkTable,
} from './walk.ts'

export type DynamicElements = ReadonlyMap<string, ReadonlyMap<Bytes, DynamicElement>>

export function walkableTable(table: WalkedTable, dynamicElements: DynamicElements): Walkable {
  return {
    what: `table ${table.family} ${table.name}`,
    walk: (packet, around) => wayOf(table, walkTable(table, packet, environmentOf(around, dynamicElements))),
  }
}

/** Packets write to dynamic sets, so each walk gets a copy of its own. */
export function environmentOf(around: Host, dynamicElements: DynamicElements): Environment {
  return {
    ...around,
    dynamicElements: new Map(Array.from(dynamicElements, ([set, elements]) => [set, new Map(elements)])),
  }
}

export function wayOf(table: WalkedTable, walk: Walk): KernelWay {
  const kept = walk.steps.flatMap(({ found }) => found).find(({ expiresMs }) => expiresMs !== undefined)
  const { steps, ...end } = walk
  return {
    ...end,
    // Words are made when they are asked for: of many ways, few are shown.
    get steps() {
      return steps.map((step) => stepOf(table, step))
    },
    ...(kept === undefined ? {} : { affinityEntry: { endpoint: endpointOf(kept), expiresMs: kept.expiresMs! } }),
  }
}

function stepOf(table: WalkedTable, { hook, chain, rule, found }: Step): KernelStep {
  const counter = rule.expressions.find((each) => each.kind === 'counter')
  return {
    hook,
    place: table.chains.has(chain) ? `${table.name} ${chain}` : chain,
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
