// A node that ran the Go kube-proxy changes over while its services are in use.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { aService, aSlice } from '../support/builders.ts'
import { printProxyTables } from '../support/nft-tables.ts'
import { startProxy } from '../support/proxy-process.ts'
import { openRig } from '../support/rig.ts'
import { startTraffic } from '../support/steady-traffic.ts'
import type { Rig } from '../support/rig.ts'

// The fixture was written by kube-proxy 1.36 for exactly these objects: `nft list ruleset`.
const leftBehind = join(import.meta.dirname, 'fixtures', 'go-kube-proxy.nft')
const web = aService({
  name: 'web',
  type: 'NodePort',
  families: [4, 6],
  clusterIPs: ['10.2.255.1', 'fd02::ff01'],
  ports: [
    { name: 'tcp', nodePort: 32001 },
    { name: 'udp', protocol: 'UDP', nodePort: 32002 },
  ],
})
const sticky = aService({
  name: 'sticky',
  clusterIPs: ['10.2.255.2'],
  spec: { sessionAffinity: 'ClientIP', sessionAffinityConfig: { clientIP: { timeoutSeconds: 600 } } },
})
const empty = aService({ name: 'empty', clusterIPs: ['10.2.255.3'] })
const objects = [
  web,
  aSlice(web, ['localB', 'remoteA'], { family: 4 }),
  aSlice(web, ['localC', 'remoteB'], { family: 6 }),
  sticky,
  aSlice(sticky, ['localB', 'localC']),
  empty,
]

let rig: Rig
beforeEach(async () => {
  rig = await openRig()
  rig.cluster.put(...objects)
})
afterEach(() => rig[Symbol.asyncDispose]())

test('a table left by the Go kube-proxy is taken over without a lost packet', async () => {
  const { node, sources } = rig.network
  node.run('nft', ['-f', '-'], readFileSync(leftBehind, 'utf8'))
  expect(printProxyTables(node)).toContain('default/web/tcp/tcp')
  const clients = [sources.localPod, sources.external]
  const overIpv4 = { address: web.spec.clusterIPs[0]!, port: 80 }
  const overIpv6 = { address: web.spec.clusterIPs[1]!, port: 80 }
  const traffic = [
    await startTraffic(clients, { tcp: overIpv4, udp: overIpv4 }),
    await startTraffic(clients, { tcp: overIpv6, udp: overIpv6 }),
  ]
  const proxy = await startProxy({ netns: node, mode: 'nftables', kubeconfig: rig.cluster.kubeconfig })
  await rig.settled()
  for (const running of traffic) await running.more()
  for (const running of traffic) expect((await running.stop()).losses).toEqual([])
  const taken = printProxyTables(node)
  await proxy[Symbol.asyncDispose]()

  // Nothing of it remains: the tables are those of a node that never had another proxy.
  node.run('nft', ['flush ruleset'])
  const fresh = await startProxy({ netns: node, mode: 'nftables', kubeconfig: rig.cluster.kubeconfig })
  await rig.settled()
  expect(printProxyTables(node)).toBe(taken)
  await fresh[Symbol.asyncDispose]()
})
