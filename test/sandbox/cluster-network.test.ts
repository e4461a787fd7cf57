// The sandbox's network by itself: who reaches whom, and what is left of it afterwards.

import { spawnSync } from 'node:child_process'
import { networkInterfaces } from 'node:os'
import { get } from 'node:http'
import { Socket } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { unshareNetwork } from '../../src/system/netns.ts'
import { Rtnetlink } from '../../src/links/rtnetlink.ts'
import { formatCidr } from '../../src/lib/ip.ts'
import { planAddresses, planNode } from '../../packages/sandbox/src/address-plan.ts'
import { ClusterNetwork, openPodNetwork } from '../../packages/sandbox/src/netns/cluster-network.ts'
import { openClientSocket } from '../../packages/sandbox/src/netns/sockets.ts'
import { WhoamiServer } from '../../packages/sandbox/src/whoami/whoami-server.ts'
import type { NetworkNamespace } from '../../packages/sandbox/src/netns/network-namespace.ts'
import { patience } from '../support/patience.ts'

// The machine of this test: a namespace of its own.
unshareNetwork()
new Rtnetlink().setUp('lo')

const plan = planAddresses(0, [4, 6])
let network: ClusterNetwork
const pods: { name: string; netns: NetworkNamespace; ips: string[]; server: WhoamiServer }[] = []

beforeAll(() => {
  network = new ClusterNetwork(plan)
  network.addNodes([planNode(plan, 1), planNode(plan, 2)])
  for (const [nth, node] of [network.nodes[0]!, network.nodes[0]!, network.nodes[1]!].entries()) {
    const name = `pod-${nth}`
    const ips = node.plan.gateways.map((gateway) => gateway.replace(/1$/, `${2 + nth}`))
    const netns = openPodNetwork(node, name, ips)
    const identity = {
      message: 'hello',
      hostname: name,
      namespace: 'default',
      node: node.plan.name,
      podIPs: ips,
      env: {},
    }
    const server = new WhoamiServer({ netns, identity, ports: [3000] })
    server.setBehaviour('serve')
    pods.push({ name, netns, ips, server })
  }
})

afterAll(() => {
  for (const { server, netns } of pods) {
    server.close()
    netns.close()
  }
  network[Symbol.dispose]()
  expect(Object.keys(networkInterfaces()), 'no link is left on the machine').toEqual(['lo'])
})

test('the addresses of the machine are usable at once: none changes later, which browsers take for another network', () => {
  const { stdout } = spawnSync('ip', ['-6', 'address', 'show', 'dev', network.machineLink], { encoding: 'utf8' })
  expect(stdout).toContain('scope link')
  expect(stdout).not.toContain('tentative')
})

test('a pod reaches every pod, itself included, and is seen with its own address', async () => {
  for (const from of pods) {
    for (const to of pods) {
      for (const [i, ip] of to.ips.entries()) {
        expect(await ask(from.netns, ip, '/')).toBe(`hello from ${to.name}\n`)
        expect(await ask(from.netns, ip, '/client')).toBe(`${from.ips[i]}\n`)
      }
    }
  }
})

test('a node reaches the pods of all nodes', async () => {
  for (const node of network.nodes) {
    for (const ip of pods.flatMap(({ ips }) => ips)) expect(await ask(node.netns, ip, '/')).toMatch(/^hello from pod-/)
  }
})

test('the machine reaches the pods, with its address of the fabric', async () => {
  for (const [i, ip] of pods[2]!.ips.entries()) {
    expect(await ask(network.machine.netns, ip, '/client')).toBe(`${plan.machine[i]}\n`)
  }
})

test('the machine has routes to services and load balancers', () => {
  using links = new Rtnetlink()
  const routes = ([4, 6] as const).flatMap((family) => links.routeDestinations(family)).map(formatCidr)
  expect(routes).toEqual(expect.arrayContaining([...plan.serviceRanges, ...plan.loadBalancerRanges]))
})

test('an address that no pod has is refused soon', async () => {
  const started = performance.now()
  await expect(ask(pods[0]!.netns, '10.96.1.1', '/')).rejects.toThrow(/EHOSTUNREACH|ENETUNREACH/)
  await expect(ask(pods[0]!.netns, 'fd00:96::1', '/')).rejects.toThrow(/EHOSTUNREACH|ENETUNREACH/)
  expect(performance.now() - started).toBeLessThan(2500 * patience())
})

function ask(netns: NetworkNamespace, host: string, path: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const createConnection = () =>
      new Socket({ fd: openClientSocket(netns, 'tcp', host.includes(':') ? 6 : 4) }).connect(3000, host)
    const request = get({ host, port: 3000, path, createConnection, timeout: 8000 * patience() }, (response) => {
      let body = ''
      response.setEncoding('utf8').on('data', (text: string) => (body += text))
      response.on('end', () => resolve(body))
    })
    request.on('timeout', () => request.destroy(new Error('no answer')))
    request.on('error', reject)
  })
}
