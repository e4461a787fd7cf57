// The program may end at any moment, in any way, and start again: no client notices.

import { afterAll, beforeAll, expect, test } from 'vitest'
import { aService, aSlice } from '../support/builders.ts'
import { eventually } from '../support/eventually.ts'
import { node } from '../support/addresses.ts'
import { printProxyTables, watchTables } from '../support/nft-tables.ts'
import { patience } from '../support/patience.ts'
import { ProxyProcess, proxyFlags, startProxy } from '../support/proxy-process.ts'
import { openRig } from '../support/rig.ts'
import { startTraffic } from '../support/steady-traffic.ts'
import { aShortWhile, tcpProbe } from '../support/netns/probe.ts'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Rig } from '../support/rig.ts'

let rig: Rig
let proxy: ProxyProcess
const mode = 'nftables'
const web = aService({ type: 'NodePort', ports: [{ name: 'tcp' }, { name: 'udp', protocol: 'UDP' }] })
const others = Array.from({ length: 60 }, () => {
  const service = aService({ type: 'NodePort', families: [4, 6] })
  return [service, aSlice(service, ['localB', 'remoteA'], { family: 4 }), aSlice(service, ['localC'], { family: 6 })]
})
const sticky = aService({
  spec: { sessionAffinity: 'ClientIP', sessionAffinityConfig: { clientIP: { timeoutSeconds: 600 } } },
})
const [address = ''] = web.spec.clusterIPs
const targets = { tcp: { address, port: 80 }, udp: { address, port: 80 } }

beforeAll(async () => {
  rig = await openRig()
  rig.cluster.put(web, aSlice(web, ['localB', 'remoteA']), sticky, aSlice(sticky, ['localB', 'localC', 'remoteA']))
  rig.cluster.put(...others.flat())
  proxy = await start()
})
afterAll(async () => {
  await proxy[Symbol.asyncDispose]()
  await rig[Symbol.asyncDispose]()
})

test.for(['SIGTERM', 'SIGINT', 'SIGKILL'] as const)(
  '%s ends the program at once, and nothing is lost until it is back',
  async (signal) => {
    const traffic = await startTraffic([rig.network.sources.localPod, rig.network.sources.external], targets)
    const before = printProxyTables(rig.network.node)
    const asked = performance.now()
    await proxy.stop(signal)
    expect(performance.now() - asked).toBeLessThan(1000 * patience())
    expect(printProxyTables(rig.network.node)).toBe(before)
    await traffic.more()
    const monitor = await watchTables(rig.network.node)
    proxy = await start()
    const changes = await monitor.stop()
    await traffic.more()
    const report = await traffic.stop()
    expect(report.losses).toEqual([])
    expect(report.connections).toBeGreaterThan(20)
    // The sentinel of start() comes and goes; whatever else there was stays as it is.
    expect(changes.filter((line) => others.flat().some((object) => line.includes(object.metadata.name)))).toEqual([])
    expect(changes.length).toBeLessThan(60)
    expect(printProxyTables(rig.network.node)).toBe(before)
  },
)

test('an affinity survives a restart', async () => {
  const client = rig.network.sources.localPod
  const to = { address: sticky.spec.clusterIP, port: 80 }
  const host = async () => {
    const answer = await tcpProbe(client, to)
    return answer.kind === 'answered' ? answer.greeting.host : answer.kind
  }
  const first = await host()
  await proxy.stop('SIGTERM')
  proxy = await start()
  for (let i = 0; i < 10; i++) expect(await host()).toBe(first)
})

test('what changed while the program was away is the only thing that it changes', async () => {
  const [changed] = others[0] ?? []
  if (changed?.kind !== 'Service') throw new Error('no service to change')
  await proxy.stop('SIGTERM')
  rig.cluster.remove(changed)
  const monitor = await watchTables(rig.network.node)
  proxy = await start()
  const changes = await monitor.stop()
  const nodePort = { address: node.ip[4], port: changed.spec.ports[0]?.nodePort ?? 0 }
  expect(await tcpProbe(rig.network.sources.external, nodePort)).toEqual({ kind: 'refused' })
  expect(changes.length).toBeGreaterThan(0)
  expect(changes.length).toBeLessThan(60)
})

test('SIGKILL at any moment of a start, under changes, leaves service whole', async () => {
  await proxy.stop('SIGTERM')
  const traffic = await startTraffic([rig.network.sources.localPod], targets)
  const volatile = aService({ ports: [{ name: 'tcp' }] })
  for (const ms of [0, 60, 90, 120, 150, 180, 220, 260, 320, 400]) {
    rig.cluster.put(volatile, aSlice(volatile, ms % 100 === 0 ? ['localB'] : ['remoteA'], { name: 'volatile' }))
    const flags = proxyFlags({ netns: rig.network.node, mode, kubeconfig: rig.cluster.kubeconfig })
    const victim = new ProxyProcess(rig.network.node, flags)
    await sleep(ms)
    await victim[Symbol.asyncDispose]()
  }
  proxy = await start()
  expect((await traffic.stop()).losses).toEqual([])
  await eventually('the last change is served', async () => {
    const answer = await tcpProbe(
      rig.network.sources.localPod,
      { address: volatile.spec.clusterIP, port: 80 },
      aShortWhile(),
    )
    return answer.kind === 'answered' && answer.greeting.host === 'localB' ? undefined : JSON.stringify(answer)
  })
})

async function start(): Promise<ProxyProcess> {
  const started = await startProxy({ netns: rig.network.node, mode, kubeconfig: rig.cluster.kubeconfig })
  await rig.settled()
  return started
}
