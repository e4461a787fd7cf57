// Pings to addresses of services: one set, and one rule at the end of the NAT chains, where nothing that is sent to an endpoint
// passes it. The node answers as itself, and the connection tracker gives the answer the address that was asked.

import type { Family } from '../../lib/ip.ts'
import { answersPing } from '../../model/ping.ts'
import type { Frontend, NodeView } from '../../model/types.ts'
import { addressField } from '../../nftables/fields.ts'
import * as nft from '../../nftables/language.ts'
import { makeSet } from '../../nftables/make-set.ts'
import type { NftSet, Rule } from '../../nftables/types.ts'
import type { Elements } from './frontend.ts'
import { addressType } from './schema.ts'

/** Several ports of a service have the same address in it. */
export const PING_SET = 'ping-ips'

const SETS: Readonly<Record<Family, NftSet>> = { 4: setOf(4), 6: setOf(6) }

function setOf(family: Family): NftSet {
  return makeSet(PING_SET, [addressType(family)], { comment: 'Service IPs that answer pings' })
}

export function pingSets({ family, answerPing }: NodeView): NftSet[] {
  return answerPing === true ? [SETS[family]] : []
}

/** Not a redirection: the interface of a pod may have no address of its own. */
export function pingRules({ family, nodeIp, answerPing }: NodeView): Rule[] {
  if (answerPing !== true) return []
  const isPing = [nft.isIcmp(family), nft.isEchoRequest(family), nft.isIn([nft.destinationAddress(family)], PING_SET)]
  return [nft.rule([...isPing, nft.dnatToAddress(family, nodeIp)], 'pings of service IPs')]
}

export function planPing(node: NodeView, frontend: Frontend, elements: Elements): void {
  if (answersPing(node, frontend)) elements.add(SETS[node.family], { key: addressField(frontend.address!) })
}
