// Tables that iptables-save has printed, for packets to walk through on paper.

import type { Bytes } from '../lib/ip.ts'
import type { KernelStep, Walkable } from '../packet-walk/types.ts'
import { parseTables } from './parse.ts'
import type { Tables } from './types.ts'
import { type Step, walkTables } from './walk.ts'

/** Packets and bytes by table, chain and rule. */
export type Counts = ReadonlyMap<string, { readonly packets: bigint; readonly bytes: bigint }>

/** When clients were noted last, by list of the `recent` match and address, on the clock of the walk. */
export type Recent = ReadonlyMap<string, ReadonlyMap<Bytes, number>>

export interface SavedTables {
  readonly tables: Tables
  readonly counts: Counts
}

/** What `iptables-save` prints, with or without `-c`. */
export function parseSaved(text: string): SavedTables {
  const counts = new Map<string, { packets: bigint; bytes: bigint }>()
  let table = ''
  const plain = text.split('\n').map((line) => {
    if (line.startsWith('*')) table = line.slice(1).trim()
    const [, packets, bytes, rest] = /^\[(\d+):(\d+)\] (-A .*)$/s.exec(line) ?? []
    if (rest === undefined) return line
    const [, chain = '', rule = ''] = /^-A (\S+) ?(.*)$/s.exec(rest) ?? []
    counts.set(countKey(table, chain, rule.trim()), { packets: BigInt(packets!), bytes: BigInt(bytes!) })
    return rest
  })
  return { tables: parseTables(plain.join('\n')), counts }
}

export function walkableTables({ tables, counts }: SavedTables, recent: Recent, what: string): Walkable {
  return {
    what,
    walk(packet, around) {
      const { steps, ...end } = walkTables(tables, packet, {
        ...around,
        // One in so many: whether it is this one is all that counts.
        random: (outOf) => (outOf <= 1 ? 0 : around.random(2)),
        recent: new Map(Array.from(recent, ([list, clients]) => [list, new Map(clients)])),
      })
      return {
        ...end,
        // Words are made when they are asked for: of many ways, few are shown.
        get steps() {
          return steps.map((step) => stepOf(step, counts))
        },
      }
    },
  }
}

function stepOf({ hook, table, chain, rule }: Step, counts: Counts): KernelStep {
  const [, quoted, plain] = /--comment (?:"((?:[^"\\]|\\.)*)"|(\S+))/.exec(rule) ?? []
  const comment = quoted ?? plain
  const counted = counts.get(countKey(table, chain, rule))
  return {
    hook: hook.toLowerCase(),
    place: `${table} ${chain}`,
    rule: rule.replace(/-m comment --comment (?:"(?:[^"\\]|\\.)*"|\S+) ?/, '').trim(),
    comment,
    found: [],
    ...(counted === undefined ? {} : { counted }),
  }
}

function countKey(table: string, chain: string, rule: string): string {
  return `${table} ${chain} ${rule}`
}
