// A node that has just joined: its Node has no addresses yet, or no ranges of pods. Rules made without them would be wrong: node
// ports open on every address, no pod taken for one of this node. So there are none until they come.

import { afterEach, beforeEach, expect, test } from 'vitest'
import { node } from '../support/addresses.ts'
import { aNode, aService, aSlice, type ApiNode } from '../support/builders.ts'
import { eventually } from '../support/eventually.ts'
import { tcpProbe } from '../support/netns/probe.ts'
import { listTables, printTable } from '../support/nft-tables.ts'
import { proxyFlags, ProxyProcess } from '../support/proxy-process.ts'
import { openRig, type Rig } from '../support/rig.ts'
import type { ProxySettings } from '../conformance/packet-flow.ts'

let rig: Rig
let proxy: ProxyProcess
const service = aService({ type: 'NodePort' })
const port = service.spec.ports[0]?.nodePort ?? 0

beforeEach(async () => {
  rig = await openRig()
  rig.cluster.put(service, aSlice(service, ['localB']))
})
afterEach(async () => {
  await proxy[Symbol.asyncDispose]()
  await rig[Symbol.asyncDispose]()
})

function nodeWithout(what: 'addresses' | 'podCIDRs'): ApiNode {
  const it = aNode()
  if (what === 'addresses') it.status.addresses = []
  else it.spec = {}
  return it
}

function start(settings: ProxySettings): void {
  const { kubeconfig } = rig.cluster
  proxy = new ProxyProcess(
    rig.network.node,
    proxyFlags({ netns: rig.network.node, mode: 'nftables', kubeconfig, settings }),
  )
}

const nodePorts = () =>
  Promise.all(
    [node.ip[4], node.secondIp[4]].map(
      async (address) => (await tcpProbe(rig.network.external, { address, port })).kind,
    ),
  )

function printRules(): string {
  return listTables(rig.network.node)
    .map((table) => printTable(rig.network.node, table))
    .join('\n')
}

/** Everything has been listed, for the others have been waited for; and there is no rule. */
async function waits(why: string): Promise<void> {
  await eventually('it waits', () =>
    proxy.log().includes(`Waiting before the first rule: ${why}`) ? undefined : proxy.logTail(),
  )
  await eventually('it lives', async () =>
    (await proxy.health('/livez'))?.status === 200 ? undefined : proxy.logTail(),
  )
  expect((await proxy.health())?.status).toBe(503)
  expect(printRules()).toBe('')
}

test('node ports open when the Node has an address, and on that alone', async () => {
  rig.cluster.put(nodeWithout('addresses'))
  start({ nodePortAddresses: ['primary'] })
  await waits('the Node has no addresses')
  expect(await nodePorts()).toEqual(['refused', 'refused'])
  rig.cluster.put(aNode())
  await proxy.ready()
  await rig.settled()
  expect(await nodePorts()).toEqual(['answered', 'refused'])
  // An object that is made again has none for a while. What was known stays.
  rig.cluster.put(nodeWithout('addresses'))
  await eventually('that is said', () =>
    proxy.log().includes('The Node has no addresses any more') ? undefined : proxy.logTail(),
  )
  await rig.settled()
  expect(await nodePorts()).toEqual(['answered', 'refused'])
})

test('with NodeCIDR the first rules come with podCIDRs, follow them, and stay when they go', async () => {
  rig.cluster.put(nodeWithout('podCIDRs'))
  start({ detectLocalMode: 'NodeCIDR' })
  await waits('the Node has no podCIDRs')
  const podCIDR = aNode().spec.podCIDRs![0]!
  rig.cluster.put(aNode())
  await proxy.ready()
  await rig.settled()
  expect(printRules()).toContain(podCIDR)
  const changed = aNode()
  changed.spec.podCIDRs = ['10.99.0.0/24']
  rig.cluster.put(changed)
  await eventually('the rules follow', () => (printRules().includes('10.99.0.0/24') ? undefined : printRules()))
  expect(printRules()).not.toContain(podCIDR)
  rig.cluster.put(nodeWithout('podCIDRs'))
  await eventually('that is said', () =>
    proxy.log().includes('The Node has no podCIDRs any more') ? undefined : proxy.logTail(),
  )
  await rig.settled()
  expect(printRules()).toContain('10.99.0.0/24')
})
