// Compares the decision with what the kernel does.

import { formatIp, joinHostPort } from '../../lib/ip.ts'
import type { KernelWay, Walkable } from '../../packet-walk/types.ts'
import type { Connection } from '../../model/follow.ts'
import type { Decision } from './decide.ts'
import type { Ways } from './walk-all.ts'

export interface CompareContext {
  readonly connection: Connection
  readonly endsAt: Walkable['endsAt']
  readonly isOwnAddress: (address: string) => boolean
}

/** Empty: they agree. */
export function compareWays(decision: Decision, { ways, isPartial }: Ways, context: CompareContext): string[] {
  const complaints = new Set<string>()
  const reached = new Set<string>()
  for (const way of ways) {
    const complaint = complain(decision, way, context)
    if (complaint !== undefined) complaints.add(complaint)
    reached.add(endOf(way))
  }
  if (decision.isRelayed === true) return [...complaints]
  const isSticky = decision.isHashed === true || ways.some(({ affinityEntry }) => affinityEntry !== undefined)
  if (decision.outcome === 'to' && context.endsAt === undefined && !isPartial && !isSticky) {
    for (const { ip, port, eligible } of decision.backends) {
      const text = joinHostPort(ip, port)
      if (eligible && !reached.has(text)) complaints.add(`the kernel never sends it to ${text}, which is eligible`)
    }
  }
  return [...complaints]
}

function complain(decision: Decision, way: KernelWay, context: CompareContext): string | undefined {
  const got = outcomeOf(way)
  const { outcome, isRelayed } = decision
  // The listener takes what the rules leave unchanged.
  if (isRelayed === true && got === 'untouched') return undefined
  if (got !== outcome)
    return `decided: ${phrase(outcome)}; in the kernel: ${phrase(got)}${got === 'to' ? ` ${endOf(way)}` : ''}`
  if (got !== 'to' || context.endsAt !== undefined) return undefined
  const backend = decision.backends.find(({ ip, port }) => joinHostPort(ip, port) === endOf(way))
  if (backend === undefined) return `the kernel sends it to ${endOf(way)}, which is not an endpoint of the service`
  if (!backend.eligible) return `the kernel sends it to ${endOf(way)}, which is not eligible: ${backend.why}`
  // Packets of the node itself have its address in any case.
  const { connection, isOwnAddress } = context
  if (connection.inputInterface === undefined && isOwnAddress(connection.source)) return undefined
  if (way.masqueraded === backend.masquerade) return undefined
  return backend.masquerade
    ? `the kernel keeps the source on the way to ${endOf(way)}, but should masquerade it: ${backend.masqueradeWhy}`
    : `the kernel masquerades the source on the way to ${endOf(way)}, but should keep it: ${backend.masqueradeWhy}`
}

export function outcomeOf({ verdict, translated }: KernelWay): Decision['outcome'] {
  if (verdict !== 'accept') return verdict
  return translated ? 'to' : 'untouched'
}

export function endOf({ destination, destinationPort }: KernelWay): string {
  return joinHostPort(formatIp(destination), destinationPort)
}

export function phrase(outcome: Decision['outcome']): string {
  switch (outcome) {
    case 'to':
      return 'sent to an endpoint'
    case 'reject':
      return 'refused'
    case 'drop':
      return 'dropped silently'
    case 'untouched':
      return 'left unchanged'
  }
}
