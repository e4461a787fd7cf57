// The Node object is deleted while the machine goes on: by an operator, by a cloud controller, by mistake. Nothing changes until
// it is back.

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { node } from '../support/addresses.ts'
import { aNode, aService, aSlice } from '../support/builders.ts'
import { eventually } from '../support/eventually.ts'
import { tcpProbe } from '../support/netns/probe.ts'
import { listTables, printTable } from '../support/nft-tables.ts'
import { ProxyProcess, startProxy } from '../support/proxy-process.ts'
import { openRig } from '../support/rig.ts'
import type { Rig } from '../support/rig.ts'

let rig: Rig
let proxy: ProxyProcess
const service = aService({ type: 'NodePort', families: [4, 6] })
const port = service.spec.ports[0]?.nodePort ?? 0

beforeEach(async () => {
  rig = await openRig()
  rig.cluster.put(service, aSlice(service, ['localB'], { family: 4 }), aSlice(service, ['localC'], { family: 6 }))
})
afterEach(async () => {
  await proxy[Symbol.asyncDispose]()
  await rig[Symbol.asyncDispose]()
})

const all = ['answered', 'answered', 'answered', 'answered']
const primary = ['answered', 'answered', 'refused', 'refused']

test.for([
  ['nftables', ['primary'], primary],
  ['iptables', ['primary'], primary],
  ['userspace', ['primary'], undefined],
  ['userspace', ['all'], all],
] as const)('%s, nodePortAddresses %s: a deleted Node changes nothing', async ([mode, nodePortAddresses, expected]) => {
  const settings = { nodePortAddresses, detectLocalMode: 'NodeCIDR' } as const
  proxy = await startProxy({ netns: rig.network.node, mode, kubeconfig: rig.cluster.kubeconfig, settings })
  await rig.settled()
  const rules = printRules()
  const before = await nodePorts()
  if (expected !== undefined) expect(before).toEqual(expected)
  expect(before.slice(0, 2)).toEqual(['answered', 'answered'])

  rig.cluster.remove(aNode())
  await eventually('it is told', () => (proxy.log().includes('Node object was deleted') ? undefined : proxy.logTail(3)))
  await rig.settled()
  expect(printRules()).toBe(rules)
  expect(await nodePorts()).toEqual(before)
  expect((await proxy.health())?.status).toBe(200)

  const changed = aNode()
  changed.spec.podCIDRs = ['10.99.0.0/24', 'fd99::/64']
  rig.cluster.put(changed)
  await eventually('the Node that is back is in force', () => {
    const now = printRules()
    return now.includes('10.99.0.0/24') && now.includes('fd99::/64') ? undefined : now
  })
  expect(await nodePorts()).toEqual(before)
})

test('nftables: a new configuration while it is gone does not forget it', async () => {
  const file = join(rig.cluster.folder, 'config.conf')
  writeFileSync(file, config({ enableProfiling: false }))
  proxy = new ProxyProcess(rig.network.node, [`--config=${file}`])
  await proxy.ready()
  await rig.settled()
  const rules = printRules()
  rig.cluster.remove(aNode())
  await eventually('it is told', () => (proxy.log().includes('Node object was deleted') ? undefined : proxy.logTail(3)))
  // This takes a new proxy within the process, and a new address of the machine a look at all node ports.
  writeFileSync(file, config({ enableProfiling: true }))
  await eventually('it starts again', () => (proxy.log().includes('Starting again') ? undefined : proxy.logTail(3)))
  rig.network.node.ip(['addr add 10.3.0.31/24 dev eth0'])
  await rig.settled()
  expect(printRules()).toBe(rules)
})

/** YAML is a superset of JSON. */
function config(more: object): string {
  return JSON.stringify({
    apiVersion: 'kubeproxy.config.k8s.io/v1alpha1',
    kind: 'KubeProxyConfiguration',
    mode: 'nftables',
    hostnameOverride: node.name,
    clientConnection: { kubeconfig: rig.cluster.kubeconfig },
    healthzBindAddress: '0.0.0.0:10256',
    conntrack: { maxPerCore: 0 },
    oomScoreAdj: 0,
    detectLocalMode: 'NodeCIDR',
    ...more,
  })
}

/** What an outside client meets on the node's addresses, the first of each family and the second. */
async function nodePorts(): Promise<string[]> {
  const addresses = [node.ip[4], node.ip[6], node.secondIp[4], node.secondIp[6]]
  const probes = addresses.map((address) => tcpProbe(rig.network.sources.external, { address, port }))
  return (await Promise.all(probes)).map(({ kind }) => kind)
}

/** The tables that the proxy has rules in. */
function printRules(): string {
  return listTables(rig.network.node)
    .toSorted()
    .map((table) => printTable(rig.network.node, table))
    .join('\n')
}
