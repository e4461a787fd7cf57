// Whether rules of other programs let packets pass. Our tables are recognized by their names, which no other program uses; the
// rules of all others count by hook and effect, whatever their names.

import type { ForeignDoubt, ForeignFact } from './facts.ts'
import { type ForeignEnd, type ForeignPacket, type ForeignTable, type Here, walkForeignTable } from './foreign-rules.ts'

/** The tables of a kube-proxy: of this program or of another. */
const OURS = /^kube-proxy(-.*)?$/

export function isForeignName(name: string): boolean {
  return !OURS.test(name)
}

export interface ForeignEnds {
  /** Packets that a rule ends. */
  readonly found: readonly ForeignEnd[]
  /** Rules that may end one, each once. */
  readonly doubts: readonly ForeignEnd[]
}

export function findForeign(
  tables: readonly ForeignTable[],
  packets: readonly ForeignPacket[],
  here: Here,
): ForeignEnds {
  const found = new Map<string, ForeignEnd>()
  const doubts = new Map<string, ForeignEnd>()
  for (const packet of packets) {
    for (const table of tables) {
      for (const end of walkForeignTable(table, packet, here)) {
        // Frames of a bridge may go another way than these packets.
        const list = end.isCertain && !table.name.startsWith('bridge ') ? found : doubts
        const key = [table.name, end.chain, end.handle ?? end.rule, packet.isOfThisNode].join('\0')
        if (!list.has(key)) list.set(key, end)
      }
    }
  }
  return { found: [...found.values()], doubts: [...doubts].filter(([key]) => !found.has(key)).map(([, end]) => end) }
}

export function factOf({ table, chain, verdict, owner, packet }: ForeignEnd, rule: string): ForeignFact {
  return {
    table: table.name,
    chain,
    rule,
    verdict: CERTAIN[verdict],
    owner,
    packet: packet.label,
    next: table.show(chain),
  }
}

/** What is never certain is no fact. */
const CERTAIN = {
  drop: 'drop',
  reject: 'reject',
  translated: 'translated',
  untracked: 'untracked',
  queued: 'drop',
  readdressed: 'translated',
  unmarked: 'translated',
  zoned: 'untracked',
  shortened: 'drop',
} as const

const MAY = {
  drop: 'may drop',
  reject: 'may refuse',
  translated: 'may redirect',
  queued: 'lets a program decide about',
  untracked: 'may hide from the connection tracker',
  readdressed: 'may give a source that is not of this machine to',
  unmarked: 'removes the mark for masquerading, so that answers take another way, from',
  zoned: 'puts into a zone of its own of the connection tracker, where its answers may not be',
  shortened: 'leaves too few hops (TTL) to',
} as const

export function doubtOf({ table, chain, verdict, owner, packet }: ForeignEnd, rule: string): ForeignDoubt {
  const whose = owner === undefined ? '' : `, of ${owner.name},`
  const what = `table ${table.name}, chain ${chain}${whose} ${MAY[verdict]} ${packet.label}: ${rule}`
  return { what, next: table.show(chain), isOfThisNode: packet.isOfThisNode }
}
