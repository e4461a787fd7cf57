// Whether nftables rules of other programs let a packet pass: it is sent through their tables on paper, too. What is ours is told by
// the table's name, which nobody else has; all others count by hook and effect, whatever they are called.

import type { Host, Packet } from '../../packet-walk/types.ts'
import type { ListedTable } from '../../nftables/parse-json.ts'
import type { Chain, Rule, Table } from '../../nftables/types.ts'
import { walkableTable } from '../../nftables/walkable.ts'
import type { ForeignFact } from './facts.ts'
import { ownerOf } from './owners.ts'

export interface ForeignPacket {
  readonly label: string
  readonly packet: Packet
  /** Whether the destination is a service's address: such a packet is seen only by what comes before the translation. */
  readonly isUntranslated: boolean
}

export interface ForeignRules {
  readonly found: readonly ForeignFact[]
  readonly doubts: readonly string[]
}

/** The tables of a kube-proxy, whoever wrote them. */
const OURS = /^kube-proxy(-.*)?$/

/** Of the hooks prerouting and output: destinations are translated there. */
const DSTNAT = -100

export function isForeignName(name: string): boolean {
  return !OURS.test(name)
}

export function findForeign(tables: readonly ListedTable[], packets: readonly ForeignPacket[]): ForeignRules {
  const foreign = tables.filter(({ table }) => isForeignName(table.name))
  return {
    found: foreign.flatMap((listed) => packets.flatMap((packet) => walkForeign(listed, packet) ?? [])),
    doubts: [...new Set(foreign.flatMap((listed) => doubtsOf(listed)))],
  }
}

function walkForeign(
  { listed, table, dynamicElements }: ListedTable,
  { label, packet, isUntranslated }: ForeignPacket,
): ForeignFact | undefined {
  const around: Host = { isLocalAddress: () => false, random: () => 0, now: () => 0 }
  const seen = isSeenBy(isUntranslated)
  const way = walkableTable(reduced(table, seen), dynamicElements).walk(packet, around)
  const last = way.steps.at(-1)
  if (last === undefined || (way.verdict === 'accept' && !way.translated)) return undefined
  const verdict = way.verdict === 'accept' ? 'translated' : way.verdict
  const chain = last.place.slice(table.name.length + 1)
  // A rule that was passed by may be the one that lets it through.
  if (last.rule === 'policy drop' && !isUnderstood(table)) return undefined
  const name = `${listed} ${table.name}`
  const next = `nft -a list chain ${name} ${chain}`
  return { table: name, chain, rule: last.rule, verdict, owner: ownerOf(table.name, chain), packet: label, next }
}

/** Packets with the address of a service are seen before the translation, those to endpoints behind it. */
function isSeenBy(isUntranslated: boolean): (chain: Chain) => boolean {
  return ({ hook }) => {
    if (hook === undefined) return true
    const isBefore = (hook.hook === 'prerouting' || hook.hook === 'output') && hook.priority < DSTNAT
    const isAt = (hook.hook === 'prerouting' || hook.hook === 'output') && hook.priority === DSTNAT
    return isUntranslated ? isBefore || isAt : !isBefore
  }
}

/** Without the chains that do not see the packet. Rules with something that we do not understand are passed by. */
function reduced(table: Table, isSeen: (chain: Chain) => boolean): Table {
  const chains = new Map<string, Chain>()
  for (const [name, chain] of table.chains) {
    if (!isSeen(chain)) continue
    chains.set(name, { ...chain, rules: chain.rules.filter(canBeRead) })
  }
  return { ...table, chains }
}

function isUnderstood({ chains }: Table): boolean {
  return [...chains.values()].every(({ rules }) => rules.every(canBeRead))
}

const NOT_FOLLOWED: ReadonlySet<string> = new Set(['unknown', 'redir', 'limit', 'log', 'byteorder'])

function canBeRead({ expressions }: Rule): boolean {
  return expressions.every(({ kind }) => !NOT_FOLLOWED.has(kind))
}

/** Rules that cannot be read and that may end a packet's way. */
function doubtsOf({ listed, table }: ListedTable): string[] {
  return [...table.chains.values()].flatMap(({ name, rules, hook }) => {
    const ends = rules.some((rule) => !canBeRead(rule) && mayEnd(rule))
    const mayLetThrough = hook?.policy === 'drop' && !isUnderstood(table)
    const where = `table ${listed} ${table.name}, chain ${name}`
    if (ends) return [`${where} has a rule that drops or refuses, under a condition that is not understood here`]
    return mayLetThrough ? [`${where} drops what no rule lets pass, and not all of its rules are understood here`] : []
  })
}

function mayEnd({ expressions }: Rule): boolean {
  return expressions.some((each) => each.kind === 'reject' || (each.kind === 'verdict' && each.code === 'drop'))
}
