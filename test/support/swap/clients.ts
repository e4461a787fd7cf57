// Clients of a node that changes over: of both families and of a node port, from pods and from outside.

import { startTraffic, type TrafficReport } from '../steady-traffic.ts'
import type { TestNetwork } from '../netns/test-network.ts'
import { swapTargets } from './objects.ts'

export interface SwapClients extends AsyncDisposable {
  /** Waits until all of them have got through a few times more, or have not. */
  more(): Promise<void>
  stop(): Promise<readonly TrafficReport[]>
}

export async function startSwapClients({ sources }: TestNetwork): Promise<SwapClients> {
  const { localPod, external, remotePod } = sources
  const traffic = await Promise.all([
    startTraffic([localPod, external], swapTargets.ipv4),
    startTraffic([localPod], swapTargets.ipv6),
    // Not from a client of the cluster IP: IPVS cannot tell two connections from one port to one backend apart.
    startTraffic([remotePod], swapTargets.nodePort),
  ])
  const stop = () => Promise.all(traffic.map((each) => each.stop()))
  return {
    async more() {
      for (const each of traffic) await each.more()
    },
    stop,
    async [Symbol.asyncDispose]() {
      await stop()
    },
  }
}
