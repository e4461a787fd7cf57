// A test network, a cluster in it and the program under test on its node.

import { Cleanup } from './cleanup.ts'
import { aService, aSlice } from './builders.ts'
import { eventually } from './eventually.ts'
import { patience } from './patience.ts'
import { openTestCluster } from './test-cluster.ts'
import { openTestNetwork } from './netns/test-network.ts'
import { tcpProbe } from './netns/probe.ts'
import type { ApiServerOptions } from './api-server/api-server.ts'
import type { TestCluster } from './test-cluster.ts'
import type { TestNetwork } from './netns/test-network.ts'

export interface Rig extends AsyncDisposable {
  readonly network: TestNetwork
  readonly cluster: TestCluster
  /** Waits until the proxy has programmed, for both families, everything that was put into the cluster before. */
  settled(withinMs?: number): Promise<void>
}

export async function openRig(api: ApiServerOptions = {}): Promise<Rig> {
  const cleanup = new Cleanup()
  const network = cleanup.use(await openTestNetwork())
  const cluster = cleanup.use(await openTestCluster(api))
  return {
    network,
    cluster,
    settled: (withinMs) => settled(network, cluster, withinMs),
    [Symbol.asyncDispose]: () => cleanup[Symbol.asyncDispose](),
  }
}

/**
 * Events of one kind arrive in order, so a service and a slice that come last and are seen to work say that all the
 * others have arrived. The proxy owes us that it programs in that order, too. Returns when no trace of them is left.
 */
async function settled(network: TestNetwork, cluster: TestCluster, withinMs = 10_000 * patience): Promise<void> {
  const sentinel = aService({ families: [4, 6] })
  const slices = [4, 6].map((family) => aSlice(sentinel, ['localB'], { family: family as 4 | 6 }))
  const until = (expected: 'answered' | 'silent') =>
    Promise.all(
      sentinel.spec.clusterIPs.map((address) =>
        eventually(
          `the proxy has ${expected === 'answered' ? 'caught up' : 'forgotten the sentinel'}`,
          async () => {
            const { kind } = await tcpProbe(
              network.sources.localPod,
              { address, port: 80 },
              { timeoutMs: 40 * patience },
            )
            return kind === expected ? undefined : `the sentinel ${address} is ${kind}`
          },
          { withinMs, everyMs: 2 },
        ),
      ),
    )
  cluster.put(sentinel, ...slices)
  await until('answered')
  // Refused would mean that only the slices are gone; what is sent to no service at all ends in the hole.
  cluster.remove(sentinel, ...slices)
  await until('silent')
}
