// What a client of the ipvs mode notices of rollouts and restarts: nothing.

import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { aName, aService, aSlice } from '../support/builders.ts'
import { openTcp, tcpProbe } from '../support/netns/probe.ts'
import { startProxy, type ProxyProcess } from '../support/proxy-process.ts'
import { openRig, type Rig } from '../support/rig.ts'

let rig: Rig
let proxy: ProxyProcess
const web = aService({ type: 'NodePort' })
const sliceName = aName('slice')
const endpoints = (...hosts: ('localB' | 'localC' | 'remoteA' | 'remoteB')[]) => aSlice(web, hosts, { name: sliceName })
const to = { address: web.spec.clusterIP, port: 80 }

const start = () => startProxy({ netns: rig.network.node, mode: 'ipvs', kubeconfig: rig.cluster.kubeconfig })

beforeAll(async () => {
  rig = await openRig()
  rig.cluster.put(web, endpoints('localB', 'remoteA'))
  proxy = await start()
})
afterAll(async () => {
  await proxy[Symbol.asyncDispose]()
  await rig[Symbol.asyncDispose]()
})

interface Connecting {
  /** Waits until ten more connections were made. */
  more(): Promise<void>
  stop(): Promise<{ connections: number; losses: string[] }>
}

/** Connects without end, from a pod and from outside; tells what did not work. */
function connectAllTheTime(): Connecting {
  const stopping = new AbortController()
  const report = { connections: 0, losses: [] as string[] }
  const loops = [rig.network.sources.localPod, rig.network.sources.external].map(async (netns) => {
    while (!stopping.signal.aborted) {
      const answer = await tcpProbe(netns, to)
      report.connections++
      if (answer.kind !== 'answered') report.losses.push(`${netns.name}: ${answer.kind}`)
      await sleep(10)
    }
  })
  return {
    more() {
      const until = report.connections + 10
      const told = () => (report.connections >= until ? undefined : `${report.connections}`)
      return eventually('clients connect', told, { withinMs: 10_000 })
    },
    async stop() {
      stopping.abort()
      await Promise.all(loops)
      return report
    },
  }
}

const saved = () => rig.network.node.run('ipvsadm', ['-Sn']).split('\n').sort().join('\n')

test.for(['SIGTERM', 'SIGKILL'] as const)('%s: the program may end and start again', async (signal) => {
  await rig.settled()
  const before = saved()
  const { conversation } = await openTcp(rig.network.sources.localPod, to)
  const traffic = connectAllTheTime()
  await proxy.stop(signal)
  await traffic.more()
  expect(saved()).toBe(before)
  proxy = await start()
  await traffic.more()
  const { connections, losses } = await traffic.stop()
  expect(losses).toEqual([])
  expect(connections).toBeGreaterThan(10)
  expect(saved()).toBe(before)
  expect((await conversation.say('still there?')).kind).toBe('answered')
  conversation.close()
})

test('a rollout takes one endpoint after the other away', async () => {
  const { conversation } = await openTcp(rig.network.sources.localPod, to)
  const traffic = connectAllTheTime()
  const steps = [
    endpoints('localB', 'remoteA', 'localC'),
    endpoints('remoteA', 'localC'),
    endpoints('remoteA', 'localC', 'remoteB'),
    endpoints('localC', 'remoteB'),
    endpoints('remoteB'),
    endpoints('localB'),
  ]
  for (const step of steps) {
    rig.cluster.put(step)
    await rig.settled()
    await traffic.more()
    expect((await conversation.say('still there?')).kind).toBe('answered')
  }
  const { connections, losses } = await traffic.stop()
  expect(losses).toEqual([])
  expect(connections).toBeGreaterThan(10)
  conversation.close()
})

test('another mode can take over, and hand back', async () => {
  await proxy.stop('SIGTERM')
  await using nftables = await startProxy({
    netns: rig.network.node,
    mode: 'nftables',
    kubeconfig: rig.cluster.kubeconfig,
  })
  expect((await tcpProbe(rig.network.sources.localPod, to)).kind).toBe('answered')
  await nftables.stop('SIGTERM')
  proxy = await start()
  expect((await tcpProbe(rig.network.sources.localPod, to)).kind).toBe('answered')
})
