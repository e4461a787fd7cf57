// Whether rules of other programs let a packet pass: it is sent through their tables on paper, too.

import type { MachineAround, WalkedPacket } from '../lib/packet-walk.ts'
import type { ListedTable } from '../nftables/parse-json.ts'
import type { Chain, Table } from '../nftables/types.ts'
import { walkableTable } from '../nftables/walkable.ts'
import type { ForeignFact } from './facts.ts'

export interface ForeignPacket {
  readonly words: string
  readonly packet: WalkedPacket
}

/** Tables of proxies, and those that iptables-nft keeps for itself: their rules are in nft's listing half told. */
const NOT_FOREIGN = /^(kube-proxy|kube-proxy-.*|nat|filter|mangle|raw|security)$/

export function findForeign(tables: readonly ListedTable[], packets: readonly ForeignPacket[]): ForeignFact[] {
  return tables
    .filter(({ table }) => !NOT_FOREIGN.test(table.name))
    .flatMap((listed) => packets.flatMap((packet) => walkForeign(listed, packet) ?? []))
}

function walkForeign(
  { listed, table, learned }: ListedTable,
  { words, packet }: ForeignPacket,
): ForeignFact | undefined {
  const around: MachineAround = { isLocalAddress: () => false, random: () => 0, now: () => 0 }
  const way = walkableTable(understood(table), learned).walk(packet, around)
  const last = way.steps.at(-1)
  if (last === undefined || (way.verdict === 'accept' && !way.translated)) return undefined
  const verdict = way.verdict === 'accept' ? 'translated' : way.verdict
  const chain = last.place.slice(table.name.length + 1)
  // A rule that was passed by may be the one that lets it through.
  if (last.rule === 'policy drop' && !isUnderstood(table)) return undefined
  const name = `${listed} ${table.name}`
  const next = `nft -a list chain ${name} ${chain}`
  return { table: name, chain, rule: last.rule, verdict, packet: words, next }
}

function isUnderstood({ chains }: Table): boolean {
  return [...chains.values()].every(({ rules }) =>
    rules.every(({ expressions }) => expressions.every(({ kind }) => kind !== 'unknown')),
  )
}

/** Rules with something that we do not understand are passed by: they may not match at all. */
function understood(table: Table): Table {
  const chains = new Map<string, Chain>()
  for (const [name, chain] of table.chains) {
    const rules = chain.rules.filter(({ expressions }) => expressions.every(({ kind }) => kind !== 'unknown'))
    chains.set(name, { ...chain, rules })
  }
  return { ...table, chains }
}
