// A test network, a cluster in it and the program under test on its node.

import { Cleanup } from './cleanup.ts'
import { aService, aSlice } from './builders.ts'
import { eventually } from './eventually.ts'
import { openTestCluster } from './test-cluster.ts'
import { openTestNetwork } from './netns/test-network.ts'
import { tcpProbe } from './netns/probe.ts'
import type { TestCluster } from './test-cluster.ts'
import type { TestNetwork } from './netns/test-network.ts'

export interface Rig extends AsyncDisposable {
  readonly network: TestNetwork
  readonly cluster: TestCluster
  /** Waits until the proxy has programmed, for both families, everything that was put into the cluster before. */
  settled(withinMs?: number): Promise<void>
}

export async function openRig(): Promise<Rig> {
  const cleanup = new Cleanup()
  const network = cleanup.use(await openTestNetwork())
  const cluster = cleanup.use(await openTestCluster())
  return {
    network,
    cluster,
    settled: (withinMs) => settled(network, cluster, withinMs),
    [Symbol.asyncDispose]: () => cleanup[Symbol.asyncDispose](),
  }
}

/**
 * Events of one kind arrive in order, so a service and a slice that come last and are seen to work say that all the
 * others have arrived. The proxy owes us that it programs in that order, too.
 */
async function settled(network: TestNetwork, cluster: TestCluster, withinMs = 10_000): Promise<void> {
  const sentinel = aService({ families: [4, 6] })
  const slices = [4, 6].map((family) => aSlice(sentinel, ['localB'], { family: family as 4 | 6 }))
  cluster.put(sentinel, ...slices)
  for (const address of sentinel.spec.clusterIPs) {
    await eventually(
      'the proxy has caught up',
      async () => {
        const answer = await tcpProbe(network.sources.localPod, { address, port: 80 }, { timeoutMs: 40 })
        return answer.kind === 'answered' ? undefined : `the sentinel ${address} is ${answer.kind}`
      },
      { withinMs, everyMs: 2 },
    )
  }
  cluster.remove(sentinel, ...slices)
}
