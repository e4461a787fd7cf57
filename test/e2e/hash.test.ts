// Nodes of their own, which know nothing of each other: the same clients come to the same endpoints, and most stay when one goes.

import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { BALANCE_ANNOTATION, type HashBalance } from '../../src/model/balance.ts'
import type { ModeName } from '../conformance/modes.ts'
import { crowdIp } from '../support/addresses.ts'
import { aService, aSlice, type EndpointWish } from '../support/builders.ts'
import { Cleanup } from '../support/cleanup.ts'
import { tcpProbe, type ProbeOptions, type Target } from '../support/netns/probe.ts'
import { startProxy } from '../support/proxy-process.ts'
import { openRig, type Rig } from '../support/rig.ts'

const ALL = ['localA', 'localB', 'localC', 'remoteA', 'remoteB'] as const
const CLIENTS = 240
/** With so few clients, chance may take so many more: four standard deviations of 2 %. */
const CHANCE = 4 * Math.sqrt(0.02 * 0.98 * CLIENTS)

describe.each<[ModeName, ModeName]>([
  ['nftables', 'nftables'],
  ['nftables', 'userspace'],
])('two nodes in %s and %s mode', (...modes) => {
  const cleanup = new Cleanup()
  const nodes: Rig[] = []
  // What belongs to a node's own proxy goes first.
  const proxies = new Cleanup()

  beforeAll(async () => {
    for (const mode of modes) {
      const rig = cleanup.use(await openRig())
      nodes.push(rig)
      proxies.use(await startProxy({ netns: rig.network.node, mode, kubeconfig: rig.cluster.kubeconfig }))
    }
  })
  afterAll(async () => {
    await proxies[Symbol.asyncDispose]()
    await cleanup[Symbol.asyncDispose]()
  })

  test.each<[HashBalance]>([['hash-client'], ['hash-connection']])(
    '%s: both choose the same endpoint, and when one of five goes, its clients move and at most 2 in 100 of the others',
    async (balance) => {
      const service = aService({ annotations: { [BALANCE_ANNOTATION]: balance } })
      const to = { address: service.spec.clusterIP, port: 80 }
      const have = async (rig: Rig, endpoints: readonly EndpointWish[]) => {
        rig.cluster.put(service, aSlice(service, endpoints, { name: `${service.metadata.name}-1` }))
        await rig.settled()
      }
      const [one, other] = nodes as [Rig, Rig]
      await have(one, ALL)
      // The other comes to the same endpoints by another way.
      await have(other, ['remoteB', 'localC'])
      await have(other, [...ALL].reverse())
      const before = await chosen(one, to, balance)
      expect(await chosen(other, to, balance)).toEqual(before)
      expect(new Set(before)).toEqual(new Set(ALL))
      await have(one, ALL.slice(1))
      await have(other, ALL.slice(1))
      const after = await chosen(one, to, balance)
      expect(await chosen(other, to, balance)).toEqual(after)
      const moved = before.filter((host, i) => host !== ALL[0] && host !== after[i])
      expect(moved.length, `of ${CLIENTS}`).toBeLessThanOrEqual(0.02 * CLIENTS + CHANCE)
    },
  )
})

/** Where each of the clients comes to: addresses outside of the cluster, or ports of one of them. */
async function chosen({ network }: Rig, to: Target, balance: HashBalance): Promise<string[]> {
  const hosts: string[] = []
  for (let client = 1; client <= CLIENTS; client++) {
    const options: ProbeOptions =
      balance === 'hash-client' ? { from: crowdIp(4, client) } : { from: crowdIp(4, 250), fromPort: 20_000 + client }
    const answer = await tcpProbe(network.sources.external, to, options)
    hosts.push(answer.kind === 'answered' ? answer.greeting.host : answer.kind)
  }
  return hosts
}
