// Whether rules of iptables that are not a proxy's let a packet pass: it is sent through its tables on paper, too.

import { parseRule } from '../../iptables/parse.ts'
import { parseSaved, type SavedTables, walkableTables } from '../../iptables/walkable.ts'
import type { KernelWay, Host } from '../../packet-walk/types.ts'
import type { ForeignFact } from './facts.ts'
import type { ForeignPacket } from './foreign.ts'
import { isProxyChain, ownerOf } from './owners.ts'

/** `text` is what iptables-save printed, `program` the one that changes it: `iptables-legacy`. */
export function findForeignIptables(text: string, program: string, packets: readonly ForeignPacket[]): ForeignFact[] {
  const saved = parseSaved(text)
  const policies = dropPolicies(text)
  return packets.flatMap((packet) => walkForeign({ saved, policies, program }, packet) ?? [])
}

interface Listed {
  readonly saved: SavedTables
  /** Chains of the kernel in table filter that drop what no rule decides about. */
  readonly policies: ReadonlySet<string>
  readonly program: string
}

function walkForeign({ saved, policies, program }: Listed, { label, packet }: ForeignPacket): ForeignFact | undefined {
  const around: Host = { isLocalAddress: () => false, random: () => 0, now: () => 0 }
  const way = walkableTables(saved, new Map(), program).walk(packet, around)
  const last = way.steps.at(-1)
  const fact = (table: string, chain: string, rule: string, verdict: ForeignFact['verdict']): ForeignFact => ({
    table: `${table} of ${program}`,
    chain,
    rule,
    verdict,
    owner: ownerOf('', chain),
    packet: label,
    next: `${program} -t ${table} -L ${chain} -n -v --line-numbers`,
  })
  if (last !== undefined && (way.verdict !== 'accept' || way.translated)) {
    const [table = '', chain = ''] = last.place.split(' ')
    // What a proxy has decided is not another program's.
    if (isProxyChain(chain)) return undefined
    return fact(table, chain, last.rule, way.verdict === 'accept' ? 'translated' : way.verdict)
  }
  const hook = packet.inputInterface === undefined ? 'OUTPUT' : 'FORWARD'
  if (!policies.has(hook) || isAccepted(way, hook) || !isUnderstood(saved, hook)) return undefined
  return fact('filter', hook, 'policy DROP', 'drop')
}

function isAccepted({ steps }: KernelWay, hook: string): boolean {
  return steps.some(
    ({ hook: at, place, rule }) =>
      at === hook.toLowerCase() && place.startsWith('filter ') && /(^| )-j ACCEPT\b/.test(rule),
  )
}

/** A rule that cannot be read may be the one that lets it through. Chains that it jumps to are not looked at. */
function isUnderstood({ tables }: SavedTables, chain: string): boolean {
  return (tables.get('filter')?.get(chain) ?? []).every((text) => {
    try {
      return parseRule(text).target?.kind !== 'jump' || /-j KUBE-/.test(text)
    } catch {
      return false
    }
  })
}

function dropPolicies(text: string): Set<string> {
  const [, filter = ''] = /^\*filter$([^]*?)^COMMIT$/m.exec(text) ?? []
  return new Set(Array.from(filter.matchAll(/^:(INPUT|FORWARD|OUTPUT) DROP\b/gm), ([, chain = '']) => chain))
}
