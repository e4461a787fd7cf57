// Draining with real connections: what a rollout does to clients.

import { Socket } from 'node:net'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { pods } from '../support/addresses.ts'
import { eventually, staysQuiet } from '../support/eventually.ts'
import { draining, service, slice } from '../support/kube-objects.ts'
import { openClientSocket } from '../../packages/sandbox/src/netns/sockets.ts'
import { openTcp, openUdp, tcpProbe, type Conversation } from '../support/netns/probe.ts'
import { openTestNetwork, type TestNetwork } from '../support/netns/test-network.ts'
import { IpvsNode } from './ipvs-node.ts'

const [gone, stays] = [pods.localB.ip[4], pods.localC.ip[4]]
let network: TestNetwork
let node: IpvsNode
/** Every test has an address of its own: what the kernel remembers of one does not matter to another. */
let number = 10
let to: { address: string; port: number }

beforeAll(async () => {
  network = await openTestNetwork()
})
afterAll(() => network[Symbol.asyncDispose]())
beforeEach(async () => {
  to = { address: `10.2.0.${++number}`, port: 80 }
  node = await IpvsNode.open(network.node, { drainLimitMs: 60_000 })
  await node.put(service({ clusterIPs: [to.address] }), slice([gone]))
})
afterEach(() => node[Symbol.dispose]())

const weightOfGone = () => node.destinations().get(gone)?.weight
const hostOf = async (conversation: Conversation) => {
  const answer = await conversation.say('still there?')
  return answer.kind === 'answered' ? answer.greeting.host : answer.kind
}
const newConnections = async (count: number) => {
  const hosts: string[] = []
  for (let i = 0; i < count; i++) {
    const answer = await tcpProbe(network.pods.localA, to)
    hosts.push(answer.kind === 'answered' ? answer.greeting.host : answer.kind)
  }
  return hosts
}
const isGone = (withinMs: number) =>
  eventually('the backend has left', () => (weightOfGone() === undefined ? undefined : `weight ${weightOfGone()}`), {
    withinMs,
    everyMs: 50,
  })

/** A connection to the backend that goes, and a change that takes it away. */
async function connectAndRemove(remove = slice([stays])): Promise<Conversation> {
  const { answer, conversation } = await openTcp(network.pods.localA, to)
  expect(answer).toMatchObject({ kind: 'answered', greeting: { host: 'localB' } })
  await node.put(remove)
  return conversation
}

describe('a removed backend', () => {
  test('keeps its connections, gets no new ones, and leaves within a second of the last', async () => {
    const conversation = await connectAndRemove()
    expect(weightOfGone()).toBe(0)
    expect(await newConnections(4)).toEqual(['localC', 'localC', 'localC', 'localC'])
    await staysQuiet('it stays', () => (weightOfGone() === 0 ? undefined : `weight ${weightOfGone()}`), { forMs: 1500 })
    expect(await hostOf(conversation)).toBe('localB')
    conversation.close()
    await isGone(1000)
  })

  test('is treated the same while it terminates', async () => {
    const conversation = await connectAndRemove(slice([{ address: gone, ...draining }, stays]))
    expect(weightOfGone()).toBe(0)
    expect(await hostOf(conversation)).toBe('localB')
    conversation.close()
    await isGone(1000)
  })

  test('leaves within a second of a connection that ends with FIN on both sides, which the kernel would remember for minutes', async () => {
    const socket = new Socket({
      fd: openClientSocket(network.pods.localA, 'tcp', 4),
      readable: true,
      writable: true,
    })
    await new Promise<void>((resolve) => socket.connect({ host: to.address, port: to.port }, resolve))
    socket.resume()
    await node.put(slice([stays]))
    expect(weightOfGone()).toBe(0)
    const closed = new Promise((resolve) => socket.once('close', resolve))
    socket.end()
    await closed
    await isGone(1000)
    expect(node.netns.run('ipvsadm', ['-Lnc']), 'the kernel has forgotten it, too').not.toContain(to.address)
  })

  test('leaves at once when it has no connections', async () => {
    await node.put(slice([stays]))
    expect([...node.destinations().keys()]).toEqual([stays])
  })

  test('gets its weight back when it comes back, with its connections', async () => {
    const conversation = await connectAndRemove()
    await node.put(slice([gone, stays]))
    expect(weightOfGone()).toBe(1)
    expect(new Set(await newConnections(4))).toEqual(new Set(['localB', 'localC']))
    expect(await hostOf(conversation)).toBe('localB')
    conversation.close()
    await staysQuiet('it stays', () => (weightOfGone() === 1 ? undefined : `weight ${weightOfGone()}`), { forMs: 1200 })
  })

  test('is drained further by a proxy that was restarted', async () => {
    const conversation = await connectAndRemove()
    node.stop()
    await node.start()
    await staysQuiet('it stays', () => (weightOfGone() === 0 ? undefined : `weight ${weightOfGone()}`), { forMs: 700 })
    expect(await hostOf(conversation)).toBe('localB')
    conversation.close()
    await isGone(1000)
  })

  test('that was the last keeps its connections, while new ones are refused', async () => {
    const conversation = await connectAndRemove(slice([]))
    expect(await newConnections(1)).toEqual(['refused'])
    expect((await tcpProbe(node.netns, to)).kind).toBe('refused')
    expect(await hostOf(conversation)).toBe('localB')
    conversation.close()
    await eventually('the virtual server has left', () => node.saved().find((line) => line.includes(to.address)), {
      withinMs: 1000,
    })
    await node.put(slice([stays]))
    expect(await newConnections(1)).toEqual(['localC'])
  })

  test('that is dead is given up, however long its clients go on trying', async () => {
    const conversation = await connectAndRemove()
    network.pods.localB.ip(['link set eth0 down'])
    try {
      void conversation.say('are you alive?')
      await isGone(40_000)
    } finally {
      conversation.close()
      network.pods.localB.ip([
        'link set eth0 up',
        'route add 10.1.0.1/32 dev eth0',
        'route add default via 10.1.0.1 dev eth0',
      ])
    }
  })
})

test('UDP leaves a removed backend at once', async () => {
  const dns = { name: 'dns', clusterIPs: [to.address], ports: [{ protocol: 'UDP' as const }] }
  const endpoints = (addresses: string[]) =>
    slice(addresses, { name: 'dns-1', serviceName: 'dns', ports: [{ protocol: 'UDP' }] })
  await node.put(service(dns), endpoints([gone]))
  const conversation = await openUdp(network.pods.localA, to)
  expect(await hostOf(conversation)).toBe('localB')
  await node.put(endpoints([stays]))
  expect(node.saved().filter((line) => line.startsWith('-a -u'))).toEqual([
    `-a -u ${to.address}:80 -r ${stays}:8080 -m -w 1`,
  ])
  expect(await hostOf(conversation)).toBe('localC')
  conversation.close()
})
