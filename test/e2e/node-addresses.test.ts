// Node ports follow the addresses of the node, as the kernel has them and as the Node object tells them.

import { afterEach, beforeEach, expect, test } from 'vitest'
import { node } from '../support/addresses.ts'
import { aNode, aService, aSlice } from '../support/builders.ts'
import { eventually } from '../support/eventually.ts'
import { startProxy } from '../support/proxy-process.ts'
import { openRig } from '../support/rig.ts'
import { tcpProbe } from '../support/netns/probe.ts'
import type { ProxyProcess } from '../support/proxy-process.ts'
import type { ProxySettings } from '../conformance/packet-flow.ts'
import type { Rig } from '../support/rig.ts'

let rig: Rig
let proxy: ProxyProcess
const service = aService({ type: 'NodePort', families: [4, 6] })
const port = service.spec.ports[0]?.nodePort ?? 0
const newAddresses = [
  { ip: '10.3.0.30', command: '10.3.0.30/24 dev eth0' },
  { ip: 'fd03::30', command: 'fd03::30/64 dev eth0 nodad' },
] as const

beforeEach(async () => {
  rig = await openRig()
  rig.cluster.put(service, aSlice(service, ['localB'], { family: 4 }), aSlice(service, ['localC'], { family: 6 }))
})
afterEach(async () => {
  await proxy[Symbol.asyncDispose]()
  await rig[Symbol.asyncDispose]()
})

test.for([[['10.3.0.0/24', 'fd03::/64']], [['all']]])(
  'with nodePortAddresses %s a new address of the node opens its node ports',
  async ([nodePortAddresses]) => {
    await start({ nodePortAddresses: nodePortAddresses ?? [] })
    for (const { ip, command } of newAddresses) {
      rig.network.node.ip([`addr add ${command}`])
      await eventually('the new address serves', () => complainUnless(ip, 'answered'))
    }
  },
)

test('with nodePortAddresses of a range an address that goes and comes back serves again', async () => {
  await start({ nodePortAddresses: ['10.3.0.0/24', 'fd03::/64'] })
  expect(await reach(node.secondIp[4])).toBe('answered')
  rig.network.node.ip([`addr del ${node.secondIp[4]}/24 dev eth0`])
  rig.network.node.ip([`addr add ${node.secondIp[4]}/24 dev eth0`])
  await eventually('it serves', () => complainUnless(node.secondIp[4], 'answered'))
})

test('with nodePortAddresses primary it is the address that the Node object names now', async () => {
  await start({ nodePortAddresses: ['primary'] })
  expect(await reach(node.ip[4])).toBe('answered')
  expect(await reach(node.secondIp[4])).toBe('refused')
  const moved = aNode()
  moved.status.addresses = [
    { type: 'InternalIP', address: node.secondIp[4] },
    { type: 'InternalIP', address: node.ip[6] },
  ]
  rig.cluster.put(moved)
  await eventually('the second address serves', () => complainUnless(node.secondIp[4], 'answered'))
  await eventually('the first one does not', () => complainUnless(node.ip[4], 'refused'))
  expect(await reach(node.ip[6])).toBe('answered')
})

async function start(settings: ProxySettings): Promise<void> {
  proxy = await startProxy({ netns: rig.network.node, mode: 'nftables', kubeconfig: rig.cluster.kubeconfig, settings })
  await rig.settled()
}

async function reach(address: string): Promise<string> {
  return (await tcpProbe(rig.network.sources.external, { address, port })).kind
}

async function complainUnless(address: string, expected: string): Promise<string | undefined> {
  const kind = await reach(address)
  return kind === expected ? undefined : `${address} is ${kind}`
}
