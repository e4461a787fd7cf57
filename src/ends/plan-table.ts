// The table that answers packets of ended connections with a reset. It is there while there are some.
// docs/adr/0017-resets-by-their-own-packets.md has the reasons.

import type { Flow } from '../conntrack/driver.ts'
import { asBytes, type Bytes, type Family } from '../lib/ip.ts'
import { addressField, portField } from '../nftables/fields.ts'
import * as nft from '../nftables/language.ts'
import { makeSet } from '../nftables/make-set.ts'
import type { NewTable } from '../nftables/transaction.ts'
import type { Chain, FieldType, Hook, NftSet, Rule } from '../nftables/types.ts'
import { CHAINS, ENDED_SET } from './names.ts'

/** Behind the connection tracker, so that a reset belongs to its connection; before addresses are translated. */
const BEFORE_NAT = -150

/** How long packets of an ended connection are answered: a client of Linux that sends tries again several times in that time. */
export const ENDED_MS = 30_000

/** Two for each connection. The tracker has no more connections than half of this, unless somebody allowed it many more. */
const MOST_DIRECTIONS = 524_288

const SETS: Readonly<Record<Family, NftSet>> = { 4: setFor(4), 6: setFor(6) }

export function endedSet(family: Family): NftSet {
  return SETS[family]
}

/** A direction of a connection as its packets arrive: source, port, destination, port. */
function setFor(family: Family): NftSet {
  const address: FieldType = family === 4 ? 'ipv4_addr' : 'ipv6_addr'
  const key: readonly FieldType[] = [address, 'inet_service', address, 'inet_service']
  return makeSet(ENDED_SET, key, { dynamic: true, timeoutMs: ENDED_MS, size: MOST_DIRECTIONS })
}

/** The kernel takes it away with the socket that made it. */
export function planEndsTable(family: Family): NewTable {
  const comment = 'resets connections to removed endpoints for kube-proxy'
  return { isOwned: true, comment, sets: [endedSet(family)], chains: chainsFor(family) }
}

/** Both directions of a connection. */
export function endedKeys({ original, reply }: Pick<Flow, 'original' | 'reply'>): Bytes[] {
  return [original, reply].map(({ src, sport, dst, dport }) =>
    asBytes(addressField(src) + portField(sport) + addressField(dst) + portField(dport)),
  )
}

function chainsFor(family: Family): Chain[] {
  const key = [nft.sourceAddress(family), nft.sourcePort, nft.destinationAddress(family), nft.destinationPort]
  const isTcp = nft.isProtocol('TCP')
  const toEnded = nft.rule([isTcp, nft.isIn(key, ENDED_SET), nft.goto(CHAINS.ended)])
  const forget = nft.deleteFromSet(ENDED_SET, key)
  return [
    {
      name: CHAINS.ended,
      comment: undefined,
      hook: undefined,
      rules: [
        nft.rule([isTcp, nft.tcpSequenceIsZero, nft.goBack], 'what the proxy sends to wake an idle side'),
        // A client that takes the same port again has a new connection.
        nft.rule([isTcp, nft.tcpFlagsAre('syn'), forget, nft.goBack]),
        nft.rule([isTcp, nft.tcpFlagsAre('syn', 'ack'), forget, nft.goBack]),
        nft.rule([isTcp, nft.rejectWithReset]),
      ],
    },
    baseChain(CHAINS.arriving, 'prerouting', toEnded),
    baseChain(CHAINS.sentHere, 'output', toEnded),
  ]
}

function baseChain(name: string, hook: Hook['hook'], rule: Rule): Chain {
  return { name, comment: undefined, hook: { type: 'filter', hook, priority: BEFORE_NAT }, rules: [rule] }
}
