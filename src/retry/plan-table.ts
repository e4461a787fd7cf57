// The table that turns a failed attempt to connect into no answer at all, so that the client's TCP tries again.
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

/** An attempt that failed is remembered for longer than a client goes on about it: four SYNs of Linux, or more, by then. */
const REMEMBERED_MS = 10_000
/** Connections that are remembered. When there is no room, a failure is what it was before: the client's. */
const REMEMBERED = 65_536
/** A client's next SYN comes after a second. */
const DOOMED_MS = 500

/** Failures per second that are dealt with, of each kind. The others are the clients', as before. */
const RATE = 500
const BURST = 500

/** Holds the headers of an ICMPv6 error and of the packet that it quotes. */
const SNAPLEN = 128

/** Without frontends, which come and go. */
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
    // Where this node has no way to a backend, it says so before the tracker has seen the SYN on its way.
    baseChain(CHAINS.output, 'output', BEFORE_NAT, [unsettled, unreachableRule(family)]),
    ...(behindIpvs ? ipvsChains(family) : []),
  ]
}

/**
 * One rule for each way to fail. Of the packets of a healthy connection only the answer to its SYN comes here: the SYN is not
 * known to the tracker yet, and what follows belongs to a handshake that has come to its end.
 */
function failureRules(family: Family): Rule[] {
  return [
    nft.rule([nft.isProtocol('TCP'), nft.tcpFlagsAre('syn', 'ack'), nft.goBack]),
    nft.rule([...isRefusal(), nft.isIn(dialled(family), SETS.frontends), nft.goto(CHAINS.refused)]),
    // A SYN that comes again. As it is before any translation, so that one that passes here twice is not taken for two.
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

/** The answer to a SYN that is not welcome. The reset of a connection that had begun has a sequence number. */
function isRefusal(): nft.Piece[] {
  return [nft.isProtocol('TCP'), nft.tcpFlagsAre('rst', 'ack'), nft.tcpSequenceIsZero, nft.isReply]
}

/** Two attempts more for a connection, while the program is there, and not too many at once. */
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
      // Errors about SYNs that waited in the node, of an attempt that has been given up since: the client is elsewhere by now.
      ...(name === CHAINS.unreachable ? [nft.rule([nft.isForgotten, nft.drop])] : []),
      nft.rule([protocol, nft.isIn(key, SETS.twice), nft.goBack]),
      nft.rule([nft.isOverRate(RATE, BURST), nft.goBack]),
      nft.rule([protocol, nft.isIn(key, SETS.once), note(SETS.twice), ...retry]),
      // Not "else": a set that is full does not match, and what cannot be counted is not tried again.
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
