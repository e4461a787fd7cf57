// Node ports on loopback addresses. What the node sends there cannot be translated: its source would leave the node as a loopback
// address. So the proxy listens and relays, where it was asked to; what it does not relay is refused and counted. Which of the two
// holds is the model's.

import type { NodeView, ServicePortView } from '../../../model/types.ts'
import { PROTOCOL_NUMBERS, type TransportProtocol } from '../../../nftables/fields.ts'
import * as nft from '../../../nftables/language.ts'
import type { Chain, Rule } from '../../../nftables/types.ts'
import { isRefusedOnLocalhost } from '../../../model/localhost.ts'
import { type Elements, frontendKey } from '../../../table-sync/plan/frontend.ts'
import { chain, matchKeys } from '../../../table-sync/plan/match.ts'
import { CHAINS, SETS } from './names.ts'
import { schemaFor } from './schema.ts'

const PROTOCOLS = Object.keys(PROTOCOL_NUMBERS) as TransportProtocol[]

/** Refuses and counts, by protocol. */
export function refusingChains({ family, localhostNodePorts }: NodeView): Chain[] {
  if (localhostNodePorts === undefined) return []
  const refuse = (protocol: TransportProtocol) => nft.rule([nft.isProtocol(protocol), nft.counter, nft.reject(family)])
  return [chain(CHAINS.refuseLocalhost, PROTOCOLS.map(refuse))]
}

export function localhostChecks({ family, localhostNodePorts }: NodeView): Rule[] {
  if (localhostNodePorts === undefined) return []
  const isRefused = nft.isIn(matchKeys(family).nodePort, SETS.refusedLocalhost)
  return [nft.rule([nft.isLoopback(family), isRefused, nft.goto(CHAINS.refuseLocalhost)])]
}

export function planRefusedLocalhost(
  node: NodeView,
  { protocol, frontends }: ServicePortView,
  elements: Elements,
): void {
  if (!isRefusedOnLocalhost(node, protocol)) return
  for (const frontend of frontends) {
    if (frontend.kind === 'nodePort')
      elements.add(schemaFor(node.family).refusedLocalhost, { key: frontendKey(frontend) })
  }
}

/** How many packets the rules of that chain have refused, by protocol. */
export function countRefused(rules: readonly Rule[]): (readonly [protocol: string, packets: number])[] {
  return rules.flatMap(({ expressions }, i) =>
    expressions.flatMap((each) => (each.kind === 'counter' ? [[PROTOCOLS[i]!, Number(each.packets)] as const] : [])),
  )
}
