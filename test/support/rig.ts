// A test network, a cluster in it and the program under test on its node.

import { Cleanup } from './cleanup.ts'
import { aService, aSlice } from './builders.ts'
import { control, unservedIp, unservedPort } from './addresses.ts'
import { eventually } from './eventually.ts'
import { openTestCluster } from './test-cluster.ts'
import { openTestNetwork } from './netns/test-network.ts'
import { aShortWhile, tcpProbe } from './netns/probe.ts'
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
 * others have arrived. The proxy owes us that it programs in that order, too. Returns when no trace of them is left: then
 * their address is answered by the control namespace, as before.
 */
async function settled(network: TestNetwork, cluster: TestCluster, withinMs = 10_000): Promise<void> {
  const n = ++sentinels
  const sentinel = aService({ families: [4, 6], clusterIPs: [unservedIp(4, n), unservedIp(6, n)] })
  const slices = ([4, 6] as const).map((family) => aSlice(sentinel, ['localB'], { family }))
  const until = (host: string) =>
    Promise.all(
      sentinel.spec.clusterIPs.map((address) =>
        eventually(
          `the proxy has ${host === control.name ? 'forgotten the sentinel' : 'caught up'}`,
          async () => {
            const answer = await tcpProbe(network.sources.localPod, { address, port: unservedPort }, aShortWhile())
            const got = answer.kind === 'answered' ? answer.greeting.host : answer.kind
            return got === host ? undefined : `the sentinel ${address} should be answered by ${host}, and is: ${got}`
          },
          { withinMs, everyMs: 2 },
        ),
      ),
    )
  cluster.put(sentinel, ...slices)
  await until('localB')
  cluster.remove(sentinel, ...slices)
  await until(control.name)
}

let sentinels = 0
