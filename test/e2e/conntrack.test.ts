// UDP has no connections, so the kernel's memory of a flow can outlive its endpoint.

import { afterAll, beforeAll, expect, test } from 'vitest'
import { node, pods, ranges } from '../support/addresses.ts'
import { anExternalIp, aService, aSlice } from '../support/builders.ts'
import { eventually } from '../support/eventually.ts'
import { startProxy } from '../support/proxy-process.ts'
import { openRig } from '../support/rig.ts'
import { aShortWhile, openTcp, openUdp } from '../support/netns/probe.ts'
import type { ApiService, EndpointWish } from '../support/builders.ts'
import type { Conversation } from '../support/netns/probe.ts'
import type { ProxyProcess } from '../support/proxy-process.ts'
import type { Rig } from '../support/rig.ts'

let rig: Rig
let proxy: ProxyProcess

beforeAll(async () => {
  rig = await openRig()
  proxy = await startProxy({ netns: rig.network.node, mode: 'nftables', kubeconfig: rig.cluster.kubeconfig })
  await rig.settled()
})
afterAll(async () => {
  await proxy[Symbol.asyncDispose]()
  await rig[Symbol.asyncDispose]()
})

const families = [4, 6] as const
const udp = (family: 4 | 6, type: 'ClusterIP' | 'NodePort' = 'ClusterIP') =>
  aService({ families: [family], type, ports: [{ protocol: 'UDP' }] })

test.for(families)('a UDP flow moves when its endpoint goes, over IPv%d', async (family) => {
  const service = udp(family)
  await put(service, 'localB')
  const flow = await openUdp(rig.network.sources.localPod, { address: service.spec.clusterIP, port: 80 })
  expect(await partner(flow)).toBe('localB')
  await put(service, 'localB', 'localC')
  expect(await partner(flow)).toBe('localB')
  await put(service, 'localC')
  await eventually('the flow has moved', async () => ((await partner(flow)) === 'localC' ? undefined : 'not yet'))
  flow.close()
})

test('a UDP flow stays while its endpoint still serves, though new ones go elsewhere', async () => {
  const service = udp(4)
  await put(service, 'localB')
  const flow = await openUdp(rig.network.sources.localPod, { address: service.spec.clusterIP, port: 80 })
  expect(await partner(flow)).toBe('localB')
  await put(service, { pod: 'localB', ready: false, serving: true, terminating: true }, 'localC')
  for (let i = 0; i < 5; i++) expect(await partner(flow)).toBe('localB')
  flow.close()
})

test.for(families)('a UDP client that was refused is served by the first endpoint, over IPv%d', async (family) => {
  const service = udp(family, 'NodePort')
  await put(service)
  const byIp = { address: service.spec.clusterIP, port: 80 }
  const byNodePort = { address: node.ip[family], port: service.spec.ports[0]?.nodePort ?? 0 }
  for (const [netns, to] of [
    [rig.network.sources.localPod, byIp],
    [rig.network.sources.external, byNodePort],
  ] as const) {
    const probe = await openUdp(netns, to, { fromPort: 5555 })
    expect((await probe.say('anybody?')).kind).toBe('refused')
    probe.close()
  }
  await put(service, 'localB')
  for (const [netns, to] of [
    [rig.network.sources.localPod, byIp],
    [rig.network.sources.external, byNodePort],
  ] as const) {
    const again = await openUdp(netns, to, { fromPort: 5555 })
    await eventually('the same client port is served', async () =>
      (await partner(again)) === 'localB' ? undefined : 'not yet',
    )
    again.close()
  }
})

test('a UDP flow to the node port moves when its endpoint goes', async () => {
  const service = udp(4, 'NodePort')
  await put(service, 'localB')
  const to = { address: node.ip[4], port: service.spec.ports[0]?.nodePort ?? 0 }
  const flow = await openUdp(rig.network.sources.external, to)
  expect(await partner(flow)).toBe('localB')
  await put(service, 'remoteA')
  await eventually('the flow has moved', async () => ((await partner(flow)) === 'remoteA' ? undefined : 'not yet'))
  flow.close()
})

test('a UDP flow of a deleted service is forgotten', async () => {
  const service = udp(4)
  const slice = await put(service, 'localB')
  const flow = await openUdp(rig.network.sources.localPod, { address: service.spec.clusterIP, port: 80 })
  expect(await partner(flow)).toBe('localB')
  rig.cluster.remove(service, slice)
  await eventually('the flow has ended', async () => ((await partner(flow)) === 'localB' ? 'still served' : undefined))
  flow.close()
})

test('a UDP client that nobody answers is not let through any more when source ranges leave it out', async () => {
  const ip = anExternalIp(4)
  const fromPort = 5556
  const targetPort = 9 // Where no pod listens: whoever gets through is refused.
  const open = aService({
    type: 'LoadBalancer',
    ingress: [{ ip, ipMode: 'VIP' }],
    ports: [{ protocol: 'UDP', targetPort }],
  })
  const closed = { ...open, spec: { ...open.spec, loadBalancerSourceRanges: [ranges.pods[4]] } }
  await put(open, 'localB')
  const flow = await openUdp(rig.network.sources.external, { address: ip, port: 80 }, { fromPort })
  expect(await partner(flow)).toBe('refused')
  flow.close()
  await put(closed, 'localB')
  await eventually('the same client port is not let through', async () => {
    const again = await openUdp(rig.network.sources.external, { address: ip, port: 80 }, { fromPort })
    const heard = await partner(again)
    again.close()
    return heard === 'silent' ? undefined : heard
  })
})

test('flows straight to a pod, and TCP connections, are not disturbed', async () => {
  const service = aService({ ports: [{ name: 'u', protocol: 'UDP' }, { name: 't' }] })
  await put(service, 'localB')
  const { localPod } = rig.network.sources
  const direct = await openUdp(localPod, { address: pods.localB.ip[4], port: 8080 })
  const { conversation: tcp } = await openTcp(localPod, { address: service.spec.clusterIP, port: 80 })
  expect(await partner(direct)).toBe('localB')
  const entry = () => rig.network.node.run('conntrack', ['-L', '-p', 'udp', '--orig-dst', pods.localB.ip[4]])
  expect(entry()).toContain(`dst=${pods.localB.ip[4]}`)
  await put(service, 'localC')
  expect(entry()).toContain(`dst=${pods.localB.ip[4]}`)
  expect(await partner(direct)).toBe('localB')
  expect(await partner(tcp)).toBe('localB')
  direct.close()
  tcp.close()
})

/** The service with exactly these endpoints, programmed. */
async function put(service: ApiService, ...endpoints: readonly EndpointWish[]) {
  const slice = aSlice(service, endpoints, { name: `${service.metadata.name}-slice` })
  rig.cluster.put(service, slice)
  await rig.settled()
  return slice
}

async function partner(conversation: Conversation): Promise<string> {
  const answer = await conversation.say('who are you?', aShortWhile().timeoutMs)
  return answer.kind === 'answered' ? answer.greeting.host : answer.kind
}
