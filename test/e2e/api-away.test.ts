// The API server may go away, come back, and misbehave: service goes on.

import { afterAll, beforeAll, expect, test } from 'vitest'
import { STATUS } from '../support/api-server/faults.ts'
import { aService, aSlice } from '../support/builders.ts'
import { eventually, staysQuiet } from '../support/eventually.ts'
import { printProxyTables, watchTables } from '../support/nft-tables.ts'
import { ProxyProcess, proxyFlags, startProxy } from '../support/proxy-process.ts'
import { openRig } from '../support/rig.ts'
import { startTraffic } from '../support/steady-traffic.ts'
import { aShortWhile, tcpProbe } from '../support/netns/probe.ts'
import type { Rig } from '../support/rig.ts'

let rig: Rig
let proxy: ProxyProcess
const web = aService({ ports: [{ name: 'tcp' }, { name: 'udp', protocol: 'UDP' }] })
const targets = { tcp: { address: web.spec.clusterIP, port: 80 }, udp: { address: web.spec.clusterIP, port: 80 } }
const others = Array.from({ length: 50 }, () => aService({ families: [4, 6] }))

beforeAll(async () => {
  rig = await openRig()
  rig.cluster.put(web, aSlice(web, ['localB', 'remoteA']))
  for (const service of others) rig.cluster.put(service, aSlice(service, ['localB']))
  proxy = await startProxy({ netns: rig.network.node, mode: 'nftables', kubeconfig: rig.cluster.kubeconfig })
  await rig.settled()
})
afterAll(async () => {
  await proxy[Symbol.asyncDispose]()
  await rig[Symbol.asyncDispose]()
})

test('while the API server is away the rules stay; when it is back only the difference is applied', async () => {
  const { cluster, network } = rig
  const { server } = cluster
  const before = printProxyTables(network.node)
  const logged = proxy.log().length
  const traffic = await startTraffic([network.sources.localPod, network.sources.external], targets)
  await server.stop()
  await eventually('the program has noticed', () =>
    /ECONNREFUSED/.test(proxy.log().slice(logged)) ? undefined : proxy.log().slice(logged),
  )
  await traffic.more()
  expect(printProxyTables(network.node)).toBe(before)
  expect((await proxy.health('/livez'))?.status).toBe(200)
  const gone = others[0]!
  cluster.remove(gone)
  const monitor = await watchTables(network.node)
  await server.restart()
  await rig.settled(40_000)
  const changes = await monitor.stop()
  expect((await traffic.stop()).losses).toEqual([])
  expect(changes.length).toBeGreaterThan(0)
  expect(changes.length).toBeLessThan(80)
  expect(
    (await tcpProbe(network.sources.localPod, { address: gone.spec.clusterIP, port: 80 }, { timeoutMs: 300 })).kind,
  ).not.toBe('answered')
})

test.for([
  ['resets all connections', () => rig.cluster.server.dropConnections()],
  ['ends its watches', () => rig.cluster.server.endWatches()],
  ['forgets its history', () => (rig.cluster.server.store.compact(), rig.cluster.server.dropConnections())],
  ['sends an error in every watch', () => rig.cluster.server.sendError(STATUS.expired)],
  ['sends garbage in every watch', () => rig.cluster.server.sendBytes(Buffer.from('{"type": nonsense\n'))],
  [
    'answers with 500, 503 and 429 for a while',
    () => {
      for (const status of [STATUS.internal, STATUS.unavailable, STATUS.tooManyRequests]) {
        rig.cluster.server.fail({ on: 'any', times: 2, what: { type: 'status', status } })
      }
      rig.cluster.server.dropConnections()
    },
  ],
] as const)('when the API server %s, the rules stay and the next change arrives', async ([, misbehave]) => {
  const before = printProxyTables(rig.network.node)
  misbehave()
  await staysQuiet('the rules are as they were', () =>
    printProxyTables(rig.network.node) === before ? undefined : 'they changed',
  )
  await rig.settled(40_000)
  expect(proxy.ended).toBeUndefined()
})

test('the program waits for an API server that is not there yet', async () => {
  await proxy[Symbol.asyncDispose]()
  const { server } = rig.cluster
  await server.stop()
  const options = { netns: rig.network.node, mode: 'nftables', kubeconfig: rig.cluster.kubeconfig } as const
  proxy = new ProxyProcess(rig.network.node, proxyFlags(options))
  await eventually('it has tried', () => (/ECONNREFUSED/.test(proxy.log()) ? undefined : proxy.log()))
  await server.restart()
  await proxy.ready()
  await rig.settled(40_000)
  await eventually('the service is reached', async () => {
    const answer = await tcpProbe(rig.network.sources.localPod, targets.tcp, aShortWhile())
    return answer.kind === 'answered' ? undefined : answer.kind
  })
})
