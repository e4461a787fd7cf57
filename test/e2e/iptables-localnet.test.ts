// route_localnet lets a neighbour reach what listens on the node's 127.0.0.1, unless a rule drops such packets (CVE-2020-8558).

import { afterEach, beforeEach, expect, test } from 'vitest'
import { node } from '../support/addresses.ts'
import { aService, aSlice } from '../support/builders.ts'
import { eventually } from '../support/eventually.ts'
import { tcpProbe } from '../support/netns/probe.ts'
import { serveStreams, type StreamServer } from '../support/netns/streams.ts'
import { ProxyProcess, proxyFlags, startProxy } from '../support/proxy-process.ts'
import { openRig } from '../support/rig.ts'
import type { Rig } from '../support/rig.ts'

const PORT = 7070
const SETTING = 'net.ipv4.conf.all.route_localnet'

let rig: Rig
let secret: StreamServer
const proxies: ProxyProcess[] = []
const service = aService({ type: 'NodePort' })
const nodePort = { address: '127.0.0.1', port: service.spec.ports[0]?.nodePort ?? 0 }

beforeEach(async () => {
  rig = await openRig()
  rig.cluster.put(service, aSlice(service, ['localB', 'remoteA']))
  secret = await serveStreams(rig.network.node, PORT, (socket) => socket.end('secret'))
  // A neighbour that sends to 127.0.0.1 over the wire.
  const { external } = rig.network.sources
  external.run('sysctl', ['-qw', `${SETTING}=1`])
  external.ip(['addr del 127.0.0.1/8 dev lo', `route add 127.0.0.1/32 via ${node.ip[4]}`])
})
afterEach(async () => {
  for (const proxy of proxies.splice(0)) await proxy[Symbol.asyncDispose]()
  await secret[Symbol.asyncDispose]()
  await rig[Symbol.asyncDispose]()
})

test('without a rule the setting does open the loopback address to neighbours', async () => {
  expect(await neighbour()).toBe('silent')
  rig.network.node.run('sysctl', ['-qw', `${SETTING}=1`])
  expect(await neighbour()).toBe('reached')
})

test('it is off before the rules are there, on with them, and off after the cleanup', async () => {
  // Nothing can be listed, so there are no rules.
  const away = new ProxyProcess(rig.network.node, [...flags(), '--master=http://192.0.2.1:9'])
  proxies.push(away)
  await eventually('it has started', () => (away.log().includes('Starting') ? undefined : away.logTail(3)))
  expect(setting()).toBe('0')
  expect(await neighbour()).toBe('silent')
  await away.stop()

  await start('iptables')
  expect(setting()).toBe('1')
  expect(await neighbour()).toBe('silent')
  expect((await tcpProbe(rig.network.node, nodePort)).kind).toBe('answered')

  await cleanUp()
  expect(setting()).toBe('0')
  expect(await neighbour()).toBe('silent')
})

test('a change of mode takes it back, and flushing everything then opens nothing', async () => {
  await (await start('iptables')).stop()
  await start('nftables')
  await eventually('it is off', () => (setting() === '0' ? undefined : 'still on'))
  rig.network.node.run('iptables', ['-F'])
  expect(await neighbour()).toBe('silent')
})

test('where the operator has it on, it stays on', async () => {
  rig.network.node.run('sysctl', ['-qw', `${SETTING}=1`])
  await (await start('iptables')).stop()
  await cleanUp()
  expect(setting()).toBe('1')
})

test('--init-only brings the rule with it', async () => {
  const init = new ProxyProcess(rig.network.node, [...flags(), '--init-only'])
  proxies.push(init)
  expect(await init.exited, init.log()).toBe('0')
  expect(setting()).toBe('1')
  expect(await neighbour()).toBe('silent')
})

test('--init-only of another mode takes it back, for a proxy that may not', async () => {
  await (await start('iptables')).stop()
  const init = new ProxyProcess(rig.network.node, [...flags(), '--proxy-mode=nftables', '--init-only'])
  proxies.push(init)
  expect(await init.exited, init.log()).toBe('0')
  expect(setting()).toBe('0')
})

/** Whether a neighbour gets anything from what listens on the node's loopback address. */
async function neighbour(): Promise<string> {
  const { kind } = await tcpProbe(
    rig.network.sources.external,
    { address: '127.0.0.1', port: PORT },
    { timeoutMs: 500 },
  )
  return kind === 'silent' ? 'silent' : 'reached'
}

function setting(): string {
  return rig.network.node.run('sysctl', ['-n', SETTING]).trim()
}

function flags(): string[] {
  return proxyFlags({ netns: rig.network.node, mode: 'iptables', kubeconfig: rig.cluster.kubeconfig })
}

async function start(mode: 'iptables' | 'nftables'): Promise<ProxyProcess> {
  const proxy = await startProxy({ netns: rig.network.node, mode, kubeconfig: rig.cluster.kubeconfig })
  proxies.push(proxy)
  await rig.settled()
  return proxy
}

async function cleanUp(): Promise<void> {
  for (const proxy of proxies.splice(0)) await proxy[Symbol.asyncDispose]()
  const cleanup = new ProxyProcess(rig.network.node, [...flags(), '--cleanup'])
  proxies.push(cleanup)
  expect(await cleanup.exited, cleanup.log()).toBe('0')
}
