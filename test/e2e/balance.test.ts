// Connections are shared out evenly.

import { afterAll, beforeAll, expect, test } from 'vitest'
import { node } from '../support/addresses.ts'
import { aService, aSlice } from '../support/builders.ts'
import { startProxy } from '../support/proxy-process.ts'
import { openRig } from '../support/rig.ts'
import { tcpProbe } from '../support/netns/probe.ts'
import type { EndpointWish } from '../support/builders.ts'
import type { Target } from '../support/netns/probe.ts'
import type { ProxyProcess } from '../support/proxy-process.ts'
import type { Rig } from '../support/rig.ts'

let rig: Rig
let proxy: ProxyProcess
/** Connections per endpoint. */
const fair = 40

beforeAll(async () => {
  rig = await openRig()
  proxy = await startProxy({ netns: rig.network.node, mode: 'nftables', kubeconfig: rig.cluster.kubeconfig })
})
afterAll(async () => {
  await proxy[Symbol.asyncDispose]()
  await rig[Symbol.asyncDispose]()
})

/** Connects often enough, and compares with six standard deviations of a fair share: wrong once in half a billion runs. */
async function expectEven(to: Target, among: number): Promise<void> {
  const shares = new Map<string, number>()
  for (let i = 0; i < fair * among; i++) {
    const answer = await tcpProbe(rig.network.sources.external, to)
    const who = answer.kind === 'answered' ? `${answer.greeting.host} at ${answer.greeting.at}` : answer.kind
    shares.set(who, (shares.get(who) ?? 0) + 1)
  }
  expect(shares.size).toBe(among)
  const slack = 6 * Math.sqrt(fair * (1 - 1 / among))
  for (const [who, count] of shares) expect(Math.abs(count - fair), who).toBeLessThan(slack)
}

test.for([4, 6] as const)(
  'five endpoints have the same share of cluster IP and node port over IPv%d',
  async (family) => {
    const service = aService({ families: [family], type: 'NodePort' })
    rig.cluster.put(service, aSlice(service, ['localA', 'localB', 'localC', 'remoteA', 'remoteB']))
    await rig.settled()
    await expectEven({ address: service.spec.clusterIP, port: 80 }, 5)
    await expectEven({ address: node.ip[family], port: service.spec.ports[0]?.nodePort ?? 0 }, 5)
  },
)

test('an endpoint named in several slices has no more than the others', async () => {
  const service = aService()
  const slices: EndpointWish[][] = [['localA', 'localB'], ['localB', 'localC'], ['localB']]
  rig.cluster.put(service, ...slices.map((endpoints) => aSlice(service, endpoints)))
  await rig.settled()
  await expectEven({ address: service.spec.clusterIP, port: 80 }, 3)
})

test('fifty endpoints have the same share, also after some have gone', async () => {
  const service = aService()
  const endpoints = Array.from({ length: 50 }, (_, i) => ({ address: `10.1.2.${i + 1}`, nodeName: node.name }))
  const slice = aSlice(service, endpoints)
  rig.cluster.put(service, slice)
  await rig.settled()
  await expectEven({ address: service.spec.clusterIP, port: 80 }, 50)
  rig.cluster.put({ ...slice, endpoints: slice.endpoints.filter((_, i) => i % 3 !== 0) })
  await rig.settled()
  await expectEven({ address: service.spec.clusterIP, port: 80 }, 33)
})
