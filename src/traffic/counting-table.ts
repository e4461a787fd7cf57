// A table that counts the connections that a proxy has translated, and nothing else. It is there only while a client asks: the
// proxy's own rules count nothing.
//
// Behind the translation, the connection tracker knows both sides of a connection: what the client dialled and what answers. A
// packet adds to the element of that pair, in a set that has room for so many pairs and forgets those without packets. Whatever
// finds no room is only in the totals.

import { type Bytes, type Family, asBytes } from '../lib/ip.ts'
import { splitFields } from '../nftables/fields.ts'
import {
  counter,
  destinationAddress,
  destinationPort,
  goBack,
  inputInterface,
  isIn,
  isLocalAddress,
  isNewConnection,
  isNotIn,
  jump,
  type Operand,
  originalDestinationAddress,
  originalDestinationPort,
  type Piece,
  protocol,
  rule,
  sourceAddress,
  wasDnated,
} from '../nftables/language.ts'
import { makeSet } from '../nftables/make-set.ts'
import { makeTable } from '../nftables/transaction.ts'
import type { Chain, FieldType, Hook, NftSet, Op } from '../nftables/types.ts'

export const COUNTING_TABLE = 'kube-proxy-counters'

/** An element without packets is forgotten after this long. */
const IDLE_MS = 5 * 60_000
/** After all that translates, and before anything that refuses. */
const AFTER_ALL = 310
/** Behind the translation, at -100, and before IPVS takes what the node sends. What was not translated will be refused. */
const TRANSLATED = -99
/** Before source ranges are looked at, at -110. */
const BEFORE_ALL = -115

export interface CountingTable {
  /** Packets of clients, of backends, and those that begin a connection: by pair. */
  readonly sent: NftSet
  readonly received: NftSet
  readonly begun: NftSet
  /** Frontends that refuse all clients or some, which the proxy fills in, and what was refused there. */
  readonly closed: NftSet
  readonly closedPorts: NftSet
  /** Frontends that are for some sources only, and which. */
  readonly guarded: NftSet
  readonly allowed: NftSet
  readonly refused: NftSet
  readonly refusedPorts: NftSet
  readonly chains: readonly Chain[]
}

/** `size` pairs, and no more. */
export function planCountingTable(family: Family, size: number): CountingTable {
  const address: FieldType = family === 4 ? 'ipv4_addr' : 'ipv6_addr'
  const pair: readonly FieldType[] = [address, 'inet_service', 'inet_proto', address, 'inet_service']
  const frontend: readonly FieldType[] = [address, 'inet_proto', 'inet_service']
  const port: readonly FieldType[] = ['inet_proto', 'inet_service']
  const sets = {
    sent: counting('sent', pair, size),
    received: counting('received', pair, size),
    begun: counting('begun', pair, size),
    closed: makeSet('closed', frontend),
    closedPorts: makeSet('closed-ports', port),
    guarded: makeSet('guarded', frontend),
    allowed: makeSet('allowed', [...frontend, address], { interval: true }),
    refused: counting('refused', frontend, size),
    refusedPorts: counting('refused-ports', port, size),
  }
  const ofPair = [
    originalDestinationAddress(family),
    originalDestinationPort,
    protocol,
    replySourceAddress(family),
    replySourcePort,
  ]
  const ofFrontend = [destinationAddress(family), protocol, destinationPort]
  const count = [
    rule([direction('original'), counter]),
    rule([direction('reply'), counter]),
    rule([isNewConnection, counter]),
    rule([direction('original'), add(sets.sent, ofPair)]),
    rule([direction('reply'), add(sets.received, ofPair)]),
    rule([isNewConnection, add(sets.begun, ofPair)]),
  ]
  const isStranger = [
    isNewConnection,
    isIn(ofFrontend, sets.guarded.name),
    isNotIn([...ofFrontend, sourceAddress(family)], sets.allowed.name),
  ]
  const refusals = [
    rule([wasDnated, goBack]),
    // These have been counted, and in some modes they come this far.
    rule([...isStranger, goBack]),
    rule([isIn(ofFrontend, sets.closed.name), add(sets.refused, ofFrontend)]),
    rule([
      isLocalAddress('daddr'),
      isIn(ofFrontend.slice(1), sets.closedPorts.name),
      add(sets.refusedPorts, ofFrontend.slice(1)),
    ]),
  ]
  // What the node sends to itself has been counted on its way out.
  const fromElsewhere = inputInterface('neq', 'lo')
  const chains = [
    chain('count', undefined, count),
    chain('forwarded', { type: 'filter', hook: 'postrouting', priority: AFTER_ALL }, [
      rule([wasDnated, jump('count')]),
    ]),
    // What the node sends to itself has been counted on its way out.
    chain('delivered', { type: 'filter', hook: 'input', priority: AFTER_ALL }, [
      rule([fromElsewhere, wasDnated, jump('count')]),
    ]),
    chain('refusals', undefined, refusals),
    chain('strangers', undefined, [rule([...isStranger, add(sets.refused, ofFrontend)])]),
    chain('arriving', { type: 'filter', hook: 'prerouting', priority: BEFORE_ALL }, [
      rule([fromElsewhere, jump('strangers')]),
    ]),
    chain('leaving', { type: 'filter', hook: 'output', priority: BEFORE_ALL }, [rule([jump('strangers')])]),
    chain('arrived', { type: 'filter', hook: 'prerouting', priority: TRANSLATED }, [
      rule([fromElsewhere, isNewConnection, jump('refusals')]),
    ]),
    chain('left', { type: 'filter', hook: 'output', priority: TRANSLATED }, [
      rule([isNewConnection, jump('refusals')]),
    ]),
  ]
  return { ...sets, chains }
}

export function opsToCount({ chains, ...sets }: CountingTable): Op[] {
  return makeTable({ comment: 'counts while kube-proxy is asked for traffic', sets: Object.values(sets), chains })
}

/** The fields of a pair, apart: address, port, protocol, address, port. */
export function splitPair(set: NftSet, key: Bytes): readonly Bytes[] {
  return splitFields(set.key, key)
}

function counting(name: string, key: readonly FieldType[], size: number): NftSet {
  return makeSet(name, key, { dynamic: true, timeoutMs: IDLE_MS, size })
}

function chain(name: string, hook: Hook | undefined, rules: Chain['rules']): Chain {
  return { name, comment: undefined, hook, rules }
}

function replySourceAddress(family: Family): Operand {
  return {
    text: `ct reply ${family === 4 ? 'ip' : 'ip6'} saddr`,
    words: family === 4 ? 1 : 4,
    load: (dreg) => ({
      kind: 'ct',
      key: family === 4 ? 'srcIp' : 'srcIp6',
      direction: 'reply',
      dreg,
    }),
  }
}

const replySourcePort: Operand = {
  text: 'ct reply proto-src',
  words: 1,
  load: (dreg) => ({ kind: 'ct', key: 'protoSrc', direction: 'reply', dreg }),
}

function direction(which: 'original' | 'reply'): Piece {
  return {
    text: `ct direction ${which}`,
    expressions: [
      { kind: 'ct', key: 'direction', dreg: 0 },
      {
        kind: 'cmp',
        op: 'eq',
        sreg: 0,
        value: asBytes(which === 'original' ? '\0' : '\x01'),
      },
    ],
  }
}

function add({ name }: NftSet, operands: readonly Operand[]): Piece {
  let words = 0
  const loads = operands.map((operand) => {
    const load = operand.load(words)
    words += operand.words
    return load
  })
  return {
    text: `update @${name} { ${operands.map(({ text }) => text).join(' . ')} counter }`,
    expressions: [
      ...loads,
      {
        kind: 'dynset',
        op: 'update',
        set: name,
        keyReg: 0,
        timeoutMs: IDLE_MS,
        counts: true,
      },
    ],
  }
}
