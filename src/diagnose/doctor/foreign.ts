// Whether rules of other programs let packets pass. Our tables are recognized by their names, which no other program uses; the
// rules of all others count by hook and effect, whatever their names.

import type { Bytes } from '../../lib/ip.ts'
import type { ForeignDoubt, ForeignFact } from './facts.ts'
import { type ForeignEnd, type ForeignPacket, type ForeignTable, walkForeignTable } from './foreign-rules.ts'

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
  isLocalAddress: (address: Bytes) => boolean,
): ForeignEnds {
  const found = new Map<string, ForeignEnd>()
  const doubts = new Map<string, ForeignEnd>()
  for (const packet of packets) {
    for (const table of tables) {
      for (const end of walkForeignTable(table, packet, isLocalAddress)) {
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
  const is = verdict === 'queued' ? 'drop' : verdict
  return { table: table.name, chain, rule, verdict: is, owner, packet: packet.label, next: table.show(chain) }
}

const MAY = {
  drop: 'may drop',
  reject: 'may refuse',
  translated: 'may redirect',
  queued: 'lets a program decide about',
  untracked: 'may hide from the connection tracker',
} as const

export function doubtOf({ table, chain, verdict, owner, packet }: ForeignEnd, rule: string): ForeignDoubt {
  const whose = owner === undefined ? '' : `, of ${owner.name},`
  const what = `table ${table.name}, chain ${chain}${whose} ${MAY[verdict]} ${packet.label}: ${rule}`
  return { what, next: table.show(chain), isOfThisNode: packet.isOfThisNode }
}
