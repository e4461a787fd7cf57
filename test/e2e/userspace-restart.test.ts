// Whoever connects while the userspace mode is away, or waits for its connections to end, is served by the kernel.

import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { node } from '../support/addresses.ts'
import { aService, aSlice } from '../support/builders.ts'
import { eventually } from '../support/eventually.ts'
import { listTables } from '../support/nft-tables.ts'
import type { Netns } from '../support/netns/netns.ts'
import { openTcp, openUdp, tcpProbe, type Target } from '../support/netns/probe.ts'
import { proxyFlags, ProxyProcess, startProxy } from '../support/proxy-process.ts'
import { hasSynced } from './upgrade.suite.ts'
import { openRig, type Rig } from '../support/rig.ts'

let rig: Rig
let proxy: ProxyProcess
const web = aService({ type: 'NodePort', ports: [{ name: 'tcp' }, { name: 'udp', protocol: 'UDP' }] })
const alone = aService({ spec: { sessionAffinity: 'ClientIP' } })
const inside = { address: web.spec.clusterIP, port: 80 }
const outside = { address: node.ip[4], port: web.spec.ports[0]?.nodePort ?? 0 }

beforeAll(async () => {
  rig = await openRig()
  rig.cluster.put(web, aSlice(web, ['localB', 'remoteA']), alone, aSlice(alone, ['localC', 'remoteB']))
})
afterAll(() => rig[Symbol.asyncDispose]())

async function start(): Promise<ProxyProcess> {
  const { kubeconfig } = rig.cluster
  return startProxy({ netns: rig.network.node, mode: 'userspace', kubeconfig, args: ['--nodeport-addresses=primary'] })
}

/** Connects again and again until it is stopped. A SYN that has no answer is sent again after a second: that counts as lost. */
function keepConnecting(from: Netns, to: Target) {
  const seen: { readonly kind: string; readonly ms: number }[] = []
  const stopping = new AbortController()
  const loop = async () => {
    while (!stopping.signal.aborted) {
      const startedMs = performance.now()
      const { answer, conversation } = await openTcp(from, to)
      const resent = answer.kind === 'answered' ? conversation.resent() : 0
      conversation.close()
      seen.push({ kind: resent > 0 ? 'sent again' : answer.kind, ms: performance.now() - startedMs })
      await sleep(5)
    }
  }
  const done = loop()
  return {
    seen,
    async stop() {
      stopping.abort()
      await done
      return seen.filter(({ kind }) => kind !== 'answered')
    },
  }
}

const tables = () => listTables(rig.network.node).filter((table) => / kube-proxy(-userspace)?$/.test(table))

const hasItAlone = () => tables().every((table) => table.endsWith('-userspace'))

test('a restart is no gap for new connections', async () => {
  proxy = await start()
  await rig.settled()
  const { localPod, external, node: itself } = rig.network.sources
  const clients = [
    keepConnecting(localPod, inside),
    keepConnecting(itself, inside),
    keepConnecting(localPod, { address: alone.spec.clusterIP, port: 80 }),
    keepConnecting(external, outside),
  ]
  const more = async () => {
    const before = clients.map(({ seen }) => seen.length)
    await eventually('all have connected a few times more', () =>
      clients.every(({ seen }, i) => seen.length > before[i]! + 5)
        ? undefined
        : clients.map(({ seen }) => seen.length).join(),
    )
  }
  let between: string[] = []
  try {
    await more()
    await proxy.stop('SIGTERM')
    between = tables()
    await more()
    proxy = await start()
    await rig.settled()
    await eventually('it has the node alone', () => (hasItAlone() ? undefined : tables().join()))
    await more()
  } finally {
    const lost = await Promise.all(clients.map((client) => client.stop()))
    expect(lost).toEqual([[], [], [], []])
  }
  expect(between).toEqual(['ip kube-proxy', 'ip6 kube-proxy'])
})

test('while it waits for its connections, new ones are served, and a UDP flow goes on', async () => {
  const { localPod } = rig.network.sources
  const { conversation } = await openTcp(localPod, inside)
  const flow = await openUdp(localPod, inside)
  proxy.signal('SIGTERM')
  await eventually('it waits', () =>
    proxy.log().includes('Waiting for connections to end') ? undefined : proxy.logTail(),
  )
  expect((await tcpProbe(localPod, inside)).kind).toBe('answered')
  expect((await conversation.say('still there?')).kind).toBe('answered')
  await eventually('the flow is answered', async () =>
    (await flow.say('and you?', 500)).kind === 'answered' ? undefined : 'not yet',
  )
  conversation.close()
  flow.close()
  expect(await proxy.exited).toBe('0')
  expect((await tcpProbe(localPod, inside)).kind).toBe('answered')
})

test('a proxy of another mode that has taken the node over has it alone', async () => {
  proxy = await start()
  await rig.settled()
  const { network, cluster } = rig
  const options = { netns: network.node, mode: 'iptables', kubeconfig: cluster.kubeconfig, args: ['-v=2'] } as const
  await using next = new ProxyProcess(network.node, proxyFlags(options))
  await hasSynced(next)
  await proxy.stop('SIGTERM')
  expect(proxy.log()).not.toContain('New connections go by rules')
  expect(tables()).toEqual([])
  expect((await tcpProbe(network.sources.localPod, inside)).kind).toBe('answered')
})

test('one that took over and ends is followed by the one before it, which has the node alone again', async () => {
  proxy = await start()
  await rig.settled()
  const { network, cluster } = rig
  const options = { netns: network.node, mode: 'userspace', kubeconfig: cluster.kubeconfig, args: ['-v=2'] } as const
  await using next = new ProxyProcess(network.node, proxyFlags(options))
  await hasSynced(next)
  await eventually('it has taken over', () => (proxy.log().includes('has taken over') ? undefined : proxy.logTail()))
  await next.stop('SIGTERM')
  expect(next.log()).toContain('New connections go by rules')
  expect((await tcpProbe(network.sources.localPod, inside)).kind).toBe('answered')
  const isBack = () => (tables().length === 2 && hasItAlone() ? undefined : tables().join())
  await eventually('the one before has the node alone', isBack, { withinMs: 10_000 })
  expect((await tcpProbe(network.sources.localPod, inside)).kind).toBe('answered')
  await proxy.stop('SIGTERM')
})
