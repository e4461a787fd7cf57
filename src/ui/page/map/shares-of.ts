// What part of its new connections each endpoint of a service gets.

import type { ServiceInfo } from '../../protocol.ts'
import type { Flow } from '../flow.ts'
import type { Rates } from '../rates.ts'

export interface Share {
  /** The pod, or the address where it is not known. */
  readonly name: string
  /** 0 to 1. */
  readonly part: number
}

/** Of the last seconds, in the order of the endpoints. Empty without connections. On a node the rules count, in a sandbox its clients. */
export function sharesOf(
  { ports, namespace }: Pick<ServiceInfo, 'ports' | 'namespace'>,
  { now }: Pick<Flow, 'now'>,
  rates: Pick<Rates, 'pairs'>,
): Share[] {
  const counts = new Map<string, number>()
  for (const { id, backends } of ports) {
    for (const { address, pod } of backends) {
      const pair = `${id}|${address}`
      const name = pod?.replace(`${namespace}/`, '') ?? address
      const count = now.pairs.get(pair)?.answered ?? rates.pairs.get(pair)?.connections ?? 0
      counts.set(name, (counts.get(name) ?? 0) + count)
    }
  }
  const total = [...counts.values()].reduce((sum, count) => sum + count, 0)
  return total === 0 ? [] : Array.from(counts, ([name, count]) => ({ name, part: count / total }))
}
