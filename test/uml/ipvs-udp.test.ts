// UDP clients of the ipvs mode that began to send before there was a Service to answer them.

import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { node } from '../support/addresses.ts'
import { aService, aSlice } from '../support/builders.ts'
import { eventually } from '../support/eventually.ts'
import { type Conversation, openUdp } from '../support/netns/probe.ts'
import { startProxy, type ProxyProcess } from '../support/proxy-process.ts'
import { openRig, type Rig } from '../support/rig.ts'

let rig: Rig
let proxy: ProxyProcess

beforeAll(async () => {
  rig = await openRig()
  proxy = await startProxy({ netns: rig.network.node, mode: 'ipvs', kubeconfig: rig.cluster.kubeconfig })
  await rig.settled()
})
afterAll(async () => {
  await proxy[Symbol.asyncDispose]()
  await rig[Symbol.asyncDispose]()
})

const cases = ([4, 6] as const).flatMap((family) =>
  (['clusterIP', 'nodePort'] as const).flatMap((frontend) =>
    (['external', 'localPod'] as const).map((from) => ({ family, frontend, from })),
  ),
)

test.for(cases)(
  'a client that keeps sending from one port is answered when the Service comes: $from to $frontend over IPv$family',
  async ({ family, frontend, from }) => {
    const service = aService({ families: [family], type: 'NodePort', ports: [{ protocol: 'UDP' }] })
    const to =
      frontend === 'clusterIP'
        ? { address: service.spec.clusterIP, port: 80 }
        : { address: node.ip[family], port: service.spec.ports[0]?.nodePort ?? 0 }
    const flow = await openUdp(rig.network.sources[from], to)
    const client = keepAsking(flow)
    await sleep(300)
    expect(client.answers).toEqual([])
    rig.cluster.put(service, aSlice(service, ['localB']))
    try {
      await eventually('the client is answered', () => (client.answers.length > 0 ? undefined : proxy.logTail(5)))
    } finally {
      await client.stop()
      flow.close()
    }
    expect(new Set(client.answers)).toEqual(new Set(['localB']))
  },
)

/** Sends without end from one port, faster than the tracker forgets; tells which hosts answered. */
function keepAsking(flow: Conversation): { readonly answers: string[]; stop(): Promise<void> } {
  const stopping = new AbortController()
  const answers: string[] = []
  const loop = (async () => {
    while (!stopping.signal.aborted) {
      const answer = await flow.say('anybody?', 100)
      if (answer.kind === 'answered') answers.push(answer.greeting.host)
      else await sleep(5)
    }
  })()
  return {
    answers,
    async stop() {
      stopping.abort()
      await loop
    },
  }
}
