// Endpoints to which this node itself has no way: it says so before its connection tracker has seen the SYN leave.

import { describe, expect, test } from 'vitest'
import { joinHostPort } from '../../src/lib/ip.ts'
import { node } from '../support/addresses.ts'
import { eventually } from '../support/eventually.ts'
import type { Rig } from '../support/rig.ts'
import { connectTimes, manyAnswered, type RetryRig } from './connect-retry.suite.ts'

const ways = {
  'a route that says unreachable': (address: string) => `route add unreachable ${address}`,
  'a route that prohibits': (address: string) => `route add prohibit ${address}`,
  /** As of a pod that has gone with its network: no answer to neighbour discovery, and an error after three seconds. */
  'no neighbour': (address: string) => `route add ${address} dev ${node.bridge}`,
} as const

const cases = Object.keys(ways).flatMap((way) =>
  (['localPod', 'external', 'node'] as const).map((source) => {
    // The pod of the tests answers ARP for all of its addresses.
    const family: 4 | 6 = way === 'no neighbour' || source === 'external' ? 6 : 4
    return { way: way as keyof typeof ways, source, family }
  }),
)

export interface RouteOptions {
  /**
   * Whose failures are heard of, so that the endpoints are ejected. Others have their next SYN balanced afresh. They have some
   * eight of them: with half of the endpoints dead, one client in 256 would meet none that lives. With one of four it is one in 65,000.
   */
  readonly heard: readonly (keyof Rig['network']['sources'])[]
  /** How many of four endpoints cannot be reached, for those whose failures are heard of. For others it is one. */
  readonly unreached: 1 | 2
}

export function testRoutes(retry: () => RetryRig, { heard, unreached }: RouteOptions): void {
  describe.concurrent('no client sees that some of 4 endpoints cannot be reached', () => {
    test.for(cases)('$way, for $source over IPv$family', async ({ way, source, family }) => {
      const { rig } = retry()
      const { service, target, addresses } = await retry().serve({ families: [family], type: 'NodePort', healthy: 4 })
      const dead = addresses.slice(0, heard.includes(source) ? unreached : 1)
      rig.network.node.ip(dead.map((address) => ways[way](address)))
      const nodePort = { address: node.ip[family], port: service.spec.ports[0]?.nodePort ?? 0 }
      const to = source === 'external' ? nodePort : target
      const from = rig.network.sources[source]
      expect(await connectTimes(8, from, to)).toEqual(manyAnswered(8))
      if (!heard.includes(source)) return
      await eventually('they are ejected', async () => {
        expect(await connectTimes(1, from, to)).toEqual(['answered'])
        const status = (await retry().proxy().ask('/statusz'))?.body ?? ''
        const ejected = dead.filter((address) => status.includes(`${joinHostPort(address, 8080)} ejected`))
        return ejected.length === dead.length ? undefined : `ejected: ${ejected.join(', ')}`
      })
    })
  })
}
