// What a thread makes of the state of a pool.

import { ipBytes } from '../lib/ip.ts'
import { hostTable } from '../lib/maglev.ts'
import { turnsOf } from '../lib/turns.ts'
import { encodeAddress } from '../system/socket-address.ts'
import type { PoolContent } from './balancer.ts'
import type { BackendSpec, HashBy, PoolState } from './pool.ts'
import { HealthBoard } from './pool-board.ts'

function weightOf({ weight = 1 }: BackendSpec): number {
  return weight
}

/** Undefined: each once. */
function turnsFor(backends: readonly BackendSpec[], hashBy: HashBy | undefined): number[] | undefined {
  const weights = backends.map(weightOf)
  const hosts = () => backends.map(({ ip, port }) => ({ address: ipBytes(ip), port }))
  if (hashBy !== undefined) return hostTable(hosts(), weights)
  return isWeighted(backends) ? turnsOf(weights) : undefined
}

function isWeighted(backends: readonly BackendSpec[]): boolean {
  return backends.some((backend) => weightOf(backend) !== weightOf(backends[0]!))
}

export function contentOf({ backends, health, affinitySeconds, hashBy }: PoolState): PoolContent {
  const all = backends.map(({ ip, port, slot, serial }) => ({
    id: `${ip} ${port}`,
    address: encodeAddress(ip, port),
    slot,
    serial,
  }))
  return {
    backends: all,
    turns: turnsFor(backends, hashBy)?.map((index) => all[index]!),
    hashBy,
    health: new HealthBoard(health),
    affinityMs: affinitySeconds === undefined ? undefined : affinitySeconds * 1000,
  }
}
