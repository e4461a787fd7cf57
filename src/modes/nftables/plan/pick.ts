// Choosing an endpoint: one set of frontends and one rule for each number of places that is in use, and each way to choose one.
//
// A verdict map would need one rule only, but the kernel walks all its elements on each commit that touches it. Plain sets
// keep a change at the same cost whatever the size of the cluster.

import type { Family } from '../../../lib/ip.ts'
import { type Balance, isHash } from '../../../model/balance.ts'
import type { SharedRule } from '../../../nftables/fragment.ts'
import * as nft from '../../../nftables/language.ts'
import { matchKeys } from '../../../table-sync/plan/match.ts'
import { makeSet } from '../../../nftables/make-set.ts'
import { NODE_PORT_KEY, serviceKey } from '../../../table-sync/plan/schema.ts'
import { countSetName, placeOf } from '../../../table-sync/plan/place.ts'
import { CHAINS, SETS } from './names.ts'
import { BY_NODE_PORT, type FrontendSets } from './frontend.ts'

interface Pick {
  readonly frontends: FrontendSets
  readonly list: 'main' | 'local'
  readonly count: number
  readonly balance: Balance
}

/** By number of places, for each combination of the rest: every list of every frontend asks. */
const cache = Array.from({ length: 24 }, () => new Map<number, SharedRule>())

export function pickRule(family: Family, pick: Pick): SharedRule {
  const { frontends, list, count, balance } = pick
  const way = isHash(balance) ? (balance === 'hash-client' ? 16 : 8) : 0
  const kind = way + (family === 4 ? 0 : 4) + (frontends === BY_NODE_PORT ? 2 : 0) + (list === 'main' ? 0 : 1)
  const known = cache[kind]!
  let shared = known.get(count)
  if (shared === undefined) known.set(count, (shared = makePickRule(family, pick)))
  return shared
}

function makePickRule(family: Family, { frontends, list, count, balance }: Pick): SharedRule {
  const byNodePort = frontends === BY_NODE_PORT
  const main = list === 'main'
  const keys = matchKeys(family)
  const key = byNodePort ? keys.nodePort : keys.service
  const set = makeSet(
    countSetName(SETS[main ? frontends.served : frontends.servedLocally], count, balance),
    byNodePort ? NODE_PORT_KEY : serviceKey(family),
  )
  const endpoints = SETS[main ? frontends.endpoints : frontends.localEndpoints]
  return {
    set,
    chain: pickChain(byNodePort, main),
    rule: nft.rule([nft.isIn(key, set.name), nft.dnatTo(family, [...key, placeOf(family, count, balance)], endpoints)]),
  }
}

function pickChain(byNodePort: boolean, main: boolean): string {
  if (byNodePort) return main ? CHAINS.pickNodePorts : CHAINS.pickLocalNodePorts
  return main ? CHAINS.pickServices : CHAINS.pickLocalServices
}
