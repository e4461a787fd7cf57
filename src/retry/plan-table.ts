// The table that drops the errors of a failed attempt to connect, so that the client's TCP sends its SYN again.
// docs/guides/dead-pods.md has the picture and the reasons.

import type { Family } from '../lib/ip.ts'
import * as nft from '../nftables/language.ts'
import { makeSet } from '../nftables/make-set.ts'
import type { Chain, FieldType, Hook, NftSet, Rule, Table } from '../nftables/types.ts'
import { ALIVE_MS, CHAINS, RETRY_TABLE, SETS } from './names.ts'

export interface RetryTableOptions {
  readonly family: Family
  /** The group of nfnetlink_log at which the program listens. */
  readonly group: number
  /** IPVS has to see a reset, or it sends the next attempt to the same place. */
  readonly behindIpvs: boolean
}

/** Behind the connection tracker, before addresses are translated: a packet has the addresses that it was sent with. */
const BEFORE_NAT = -150
/** IPVS translates answers at 98 and 100. */
const BEHIND_IPVS = 110

/** How long a failed attempt is remembered. A client of Linux sends at least four SYNs in that time. */
const REMEMBERED_MS = 10_000
/** The most connections that are remembered. Without room, the client sees the failure, as without the proxy. */
const REMEMBERED = 65_536
/** A client's next SYN comes after a second. */
const DOOMED_MS = 500

/** The most failures per second that are retried, of each kind. Clients see the others, as without the proxy. */
const RATE = 500
const BURST = 500

/** Holds the headers of an ICMPv6 error and of the packet that it quotes. */
const SNAPLEN = 128

/** The table without its frontends, which change. */
export function planRetryTable(options: RetryTableOptions): Table {
  const sets = planRetrySets(options.family)
  return {
    family: nft.nftFamily(options.family),
    name: RETRY_TABLE,
    comment: 'retries of connections for kube-proxy',
    sets: new Map(Object.values(sets).map((set) => [set.name, set])),
    chains: new Map(chainsFor(options).map((chain) => [chain.name, chain])),
    elements: new Map(),
  }
}

export function planRetrySets(family: Family): Readonly<Record<keyof typeof SETS, NftSet>> {
  const address: FieldType = family === 4 ? 'ipv4_addr' : 'ipv6_addr'
  const connection: readonly FieldType[] = [address, 'inet_service', address, 'inet_service']
  const remembered = { dynamic: true, timeoutMs: REMEMBERED_MS, size: REMEMBERED }
  return {
    alive: makeSet(SETS.alive, ['inet_proto'], { dynamic: true, timeoutMs: ALIVE_MS, size: 2 }),
    frontends: makeSet(SETS.frontends, [address, 'inet_service']),
    once: makeSet(SETS.once, connection, remembered),
    twice: makeSet(SETS.twice, connection, remembered),
    doomed: makeSet(SETS.doomed, connection, { ...remembered, timeoutMs: 1000 }),
  }
}

/** The connection as the client began it. Behind a match on the protocol, or nft does not know what the ports are. */
function connectionKey(family: Family): readonly nft.Operand[] {
  return [
    nft.originalSourceAddress(family),
    nft.originalSourcePort,
    nft.originalDestinationAddress(family),
    nft.originalDestinationPort,
  ]
}

function chainsFor(options: RetryTableOptions): Chain[] {
  const { family, behindIpvs } = options
  const unsettled = nft.rule([nft.isUnsettled, nft.goto(CHAINS.unsettled)])
  return [
    failureChain(CHAINS.refused, nft.isProtocol('TCP'), options, behindIpvs ? 'drop behind IPVS' : 'drop'),
    failureChain(CHAINS.unreachable, nft.isIcmp(family), options, 'drop'),
    failureChain(CHAINS.silent, nft.isProtocol('TCP'), options, 'accept'),
    { name: CHAINS.unsettled, comment: undefined, hook: undefined, rules: failureRules(family) },
    baseChain(CHAINS.prerouting, 'prerouting', BEFORE_NAT, [unsettled]),
    // If this node has no route to a backend, its error comes before the connection tracker has seen the SYN leave.
    baseChain(CHAINS.output, 'output', BEFORE_NAT, [unsettled, unreachableRule(family)]),
    ...(behindIpvs ? ipvsChains(family) : []),
  ]
}

/**
 * One rule for each way to fail. Of a healthy connection, only the SYN-ACK passes this chain: the connection tracker does not know
 * the SYN yet, and later packets belong to a complete handshake.
 */
function failureRules(family: Family): Rule[] {
  return [
    nft.rule([nft.isProtocol('TCP'), nft.tcpFlagsAre('syn', 'ack'), nft.goBack]),
    nft.rule([...isRefusal(), nft.isIn(dialled(family), SETS.frontends), nft.goto(CHAINS.refused)]),
    // A repeated SYN. Matched before translation, so that one SYN that passes here twice does not count as two.
    nft.rule([
      nft.isProtocol('TCP'),
      nft.tcpFlagsAre('syn'),
      nft.isNewConnection,
      nft.isIn([nft.destinationAddress(family), nft.destinationPort], SETS.frontends),
      nft.goto(CHAINS.silent),
    ]),
    unreachableRule(family),
  ]
}

function unreachableRule(family: Family): Rule {
  return nft.rule([
    nft.isIcmp(family),
    nft.isUnreachable(family),
    nft.isAboutTcp(family),
    nft.isRelated,
    nft.isUnanswered,
    nft.isIn(dialled(family), SETS.frontends),
    nft.goto(CHAINS.unreachable),
  ])
}

/** Behind a match on the protocol. */
function dialled(family: Family): readonly nft.Operand[] {
  return [nft.originalDestinationAddress(family), nft.originalDestinationPort]
}

/** A reset that answers a SYN. The reset of an established connection has a sequence number. */
function isRefusal(): nft.Piece[] {
  return [nft.isProtocol('TCP'), nft.tcpFlagsAre('rst', 'ack'), nft.tcpSequenceIsZero, nft.isReply]
}

/** Gives a connection two more attempts, while the proxy runs, and within the rate limit. */
function failureChain(
  name: string,
  protocol: nft.Piece,
  { family, group }: RetryTableOptions,
  fate: 'accept' | 'drop' | 'drop behind IPVS',
): Chain {
  const key = connectionKey(family)
  const retry = {
    accept: [nft.logTo(group, SNAPLEN)],
    drop: [nft.logTo(group, SNAPLEN), nft.drop],
    'drop behind IPVS': [nft.logTo(group, SNAPLEN), nft.addToSet(SETS.doomed, key, DOOMED_MS)],
  }[fate]
  const note = (set: string) => nft.addToSet(set, key, REMEMBERED_MS)
  return {
    name,
    comment: undefined,
    hook: undefined,
    rules: [
      nft.rule([nft.isNotIn([nft.protocol], SETS.alive), nft.goBack]),
      // Late errors about SYNs that waited in the node. Their attempt is given up, and the client already tries another backend.
      ...(name === CHAINS.unreachable ? [nft.rule([nft.isForgotten, nft.drop])] : []),
      nft.rule([protocol, nft.isIn(key, SETS.twice), nft.goBack]),
      nft.rule([nft.isOverRate(RATE, BURST), nft.goBack]),
      nft.rule([protocol, nft.isIn(key, SETS.once), note(SETS.twice), ...retry]),
      // Not "else": if the set is full, adding does not match, and a connection that cannot be counted gets no retry.
      nft.rule([protocol, nft.isNotIn(key, SETS.once), note(SETS.once), ...retry]),
    ],
  }
}

function ipvsChains(family: Family): Chain[] {
  const rules = [nft.rule([nft.isUnsettled, ...isRefusal(), nft.isIn(connectionKey(family), SETS.doomed), nft.drop])]
  return [
    baseChain(CHAINS.forward, 'forward', BEHIND_IPVS, rules),
    baseChain(CHAINS.input, 'input', BEHIND_IPVS, rules),
  ]
}

function baseChain(name: string, hook: Hook['hook'], priority: number, rules: readonly Rule[]): Chain {
  return { name, comment: undefined, hook: { type: 'filter', hook, priority }, rules }
}
