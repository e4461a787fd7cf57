// UDP flows of services that went while the proxy was not there to see it.

import { afterAll, beforeAll, expect, test } from 'vitest'
import { node } from '../support/addresses.ts'
import { aService, aSlice } from '../support/builders.ts'
import { openUdp } from '../support/netns/probe.ts'
import { startProxy, whyNotRun } from '../support/proxy-process.ts'
import { openRig } from '../support/rig.ts'
import type { Conversation } from '../support/netns/probe.ts'
import type { Rig } from '../support/rig.ts'

let rig: Rig
beforeAll(async () => {
  rig = await openRig()
})
afterAll(() => rig[Symbol.asyncDispose]())

const kinds = [
  { mode: 'nftables', family: 4 },
  { mode: 'nftables', family: 6 },
  { mode: 'iptables', family: 4 },
  { mode: 'iptables', family: 6 },
] as const

test.for(kinds)(
  'a restart in $mode mode forgets flows of services that were deleted meanwhile, over IPv$family',
  async ({ mode, family }, { skip }) => {
    const reason = whyNotRun(mode)
    if (reason !== undefined) skip(reason)
    const start = () => startProxy({ netns: rig.network.node, mode, kubeconfig: rig.cluster.kubeconfig })
    const wish = { families: [family], type: 'NodePort', ports: [{ protocol: 'UDP' }] } as const
    const [stays, goes] = [aService(wish), aService(wish)]
    const slices = [stays, goes].map((service) => aSlice(service, ['localB']))
    rig.cluster.put(stays, goes, ...slices)
    const before = await start()
    await rig.settled()
    const { localPod, external } = rig.network.sources
    const open = async ({ spec }: typeof stays) => [
      await openUdp(localPod, { address: spec.clusterIP, port: 80 }),
      await openUdp(external, { address: node.ip[family], port: spec.ports[0]?.nodePort ?? 0 }),
    ]
    const kept = await open(stays)
    const lost = await open(goes)
    for (const flow of [...kept, ...lost]) expect(await partner(flow)).toBe('localB')

    await before[Symbol.asyncDispose]()
    rig.cluster.remove(goes, slices[1]!)
    for (const flow of [...kept, ...lost]) expect(await partner(flow)).toBe('localB')
    const after = await start()
    await rig.settled()
    for (const flow of kept) expect(await partner(flow)).toBe('localB')
    for (const flow of lost) expect(await partner(flow)).not.toBe('localB')
    for (const flow of [...kept, ...lost]) flow.close()
    await after[Symbol.asyncDispose]()
  },
)

async function partner(conversation: Conversation): Promise<string> {
  const answer = await conversation.say('who are you?')
  return answer.kind === 'answered' ? answer.greeting.host : answer.kind
}
