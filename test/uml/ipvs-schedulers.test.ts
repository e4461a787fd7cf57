// What the schedulers do with real connections: the mode leaves the choice to the kernel, and says how much each weighs.

import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { BALANCE_ANNOTATION } from '../../src/model/balance.ts'
import { WEIGHTS_ANNOTATION } from '../../src/model/weights.ts'
import { crowdIp, pods } from '../support/addresses.ts'
import { service, slice } from '../support/kube-objects.ts'
import { openTcp, tcpProbe, type Conversation } from '../support/netns/probe.ts'
import { openTestNetwork, type TestNetwork } from '../support/netns/test-network.ts'
import { IpvsNode } from './ipvs-node.ts'

const CLIENTS = 150
const names = ['localB', 'localC', 'remoteA'] as const
let network: TestNetwork
let node: IpvsNode | undefined
let number = 100
const open: Conversation[] = []

beforeAll(async () => {
  network = await openTestNetwork()
})
afterAll(() => network[Symbol.asyncDispose]())
afterEach(() => {
  for (const conversation of open.splice(0)) conversation.close()
  node?.[Symbol.dispose]()
})

/** Starts the mode with a scheduler and a service over the three pods, with these weights. */
async function serve(
  scheduler: string,
  weights: readonly number[] = [1, 1, 1],
  annotations: Record<string, string> = {},
): Promise<{ address: string; port: number }> {
  const address = `10.2.0.${++number}`
  const backends = names.slice(0, weights.length).map((name) => pods[name].ip[4])
  const text = backends.map((ip, i) => `${ip}=${weights[i]}`).join(',')
  node = await IpvsNode.open(network.node, { scheduler })
  await node.put(
    service({ clusterIPs: [address], annotations: { [WEIGHTS_ANNOTATION]: text, ...annotations } }),
    slice(backends),
  )
  return { address, port: 80 }
}

/** Opens a connection, keeps it, and tells who answers. */
async function hold(to: { address: string; port: number }): Promise<{ host: string; conversation: Conversation }> {
  const { answer, conversation } = await openTcp(network.pods.localA, to)
  open.push(conversation)
  return { host: answer.kind === 'answered' ? answer.greeting.host : answer.kind, conversation }
}

async function ask(to: { address: string; port: number }, times: number, from?: string): Promise<string[]> {
  const hosts: string[] = []
  for (let i = 0; i < times; i++) {
    const netns = from === undefined ? network.pods.localA : network.external
    const answer = await tcpProbe(netns, to, from === undefined ? {} : { from })
    hosts.push(answer.kind === 'answered' ? answer.greeting.host : answer.kind)
  }
  return hosts
}

const count = (hosts: readonly string[]) =>
  Object.fromEntries([...new Set(hosts)].sort().map((host) => [host, hosts.filter((each) => each === host).length]))

describe('scheduler', () => {
  test('rr: one after the other, in the same order again and again', async () => {
    const hosts = await ask(await serve('rr'), 9)
    expect(new Set(hosts.slice(0, 3))).toEqual(new Set(names))
    expect(hosts).toEqual([...hosts.slice(0, 3), ...hosts.slice(0, 3), ...hosts.slice(0, 3)])
  })

  test('wrr: by weight, exactly', async () => {
    expect(count(await ask(await serve('wrr', [4, 2, 1]), 14))).toEqual({ localB: 8, localC: 4, remoteA: 2 })
  })

  test('lc: where the fewest connections are', async () => {
    const to = await serve('lc')
    const held = [await hold(to), await hold(to), await hold(to)]
    expect(new Set(held.map(({ host }) => host))).toEqual(new Set(names))
    held[1]!.conversation.close()
    expect((await hold(to)).host).toBe(held[1]!.host)
    held[0]!.conversation.close()
    expect((await hold(to)).host).toBe(held[0]!.host)
  })

  test('wlc: the fewest connections for its weight', async () => {
    const to = await serve('wlc', [3, 1])
    const hosts: string[] = []
    for (let i = 0; i < 8; i++) hosts.push((await hold(to)).host)
    expect(count(hosts)).toEqual({ localB: 6, localC: 2 })
  })

  test('sed: the shortest expected delay', async () => {
    const to = await serve('sed', [4, 1])
    const hosts: string[] = []
    for (let i = 0; i < 5; i++) hosts.push((await hold(to)).host)
    // The heavy one takes all until it would have to wait as long as the light one, which has nothing to do.
    expect(hosts.slice(0, 3)).toEqual(['localB', 'localB', 'localB'])
    expect(count(hosts)).toEqual({ localB: 4, localC: 1 })
  })

  test('nq: never waits where another has nothing to do', async () => {
    const to = await serve('nq', [100, 1])
    expect(new Set([(await hold(to)).host, (await hold(to)).host])).toEqual(new Set(['localB', 'localC']))
  })

  test('sh: a client always comes to the same, and different clients to different ones', async () => {
    const to = await serve('sh')
    const first: string[] = []
    for (let client = 1; client <= 24; client++) {
      const hosts = await ask(to, 3, crowdIp(4, client))
      expect(new Set(hosts).size, `client ${client}`).toBe(1)
      first.push(hosts[0]!)
    }
    expect(new Set(first)).toEqual(new Set(names))
  })

  test('balance hash-client: a client always comes to the same, whatever its port, and different clients to different ones', async () => {
    const to = await serve('rr', [1, 1, 1], { [BALANCE_ANNOTATION]: 'hash-client' })
    const first: string[] = []
    for (let client = 1; client <= 24; client++) {
      const hosts = await ask(to, 3, crowdIp(4, client))
      expect(new Set(hosts).size, `client ${client}`).toBe(1)
      first.push(hosts[0]!)
    }
    expect(new Set(first)).toEqual(new Set(names))
  })

  test('balance hash-client: another node chooses the same, and when one of three goes, few others move', async () => {
    const annotations = { [BALANCE_ANNOTATION]: 'hash-client' }
    const to = await serve('rr', [1, 1, 1], annotations)
    const chosen = async () => {
      const hosts: string[] = []
      for (let client = 1; client <= CLIENTS; client++) hosts.push(...(await ask(to, 1, crowdIp(4, client))))
      return hosts
    }
    const have = (...backends: readonly (typeof names)[number][]) =>
      node!.put(service({ clusterIPs: [to.address], annotations }), slice(backends.map((name) => pods[name].ip[4])))
    const before = await chosen()
    // What another node has that never saw this one, and got the same endpoints by another way.
    await have('remoteA')
    await have('localC', 'remoteA', 'localB')
    expect(await chosen()).toEqual(before)
    await have('localB', 'localC')
    const after = await chosen()
    const moved = before.filter((host, i) => host !== 'remoteA' && host !== after[i])
    // With so few clients, chance may take four standard deviations of 2 % more.
    expect(moved.length, `of ${CLIENTS}`).toBeLessThanOrEqual(0.02 * CLIENTS + 4 * Math.sqrt(0.02 * CLIENTS))
  })

  test('balance hash-connection: spreads the connections of one client', async () => {
    const to = await serve('rr', [1, 1, 1], { [BALANCE_ANNOTATION]: 'hash-connection' })
    expect(new Set(await ask(to, 30))).toEqual(new Set(names))
  })

  test('balance least-connections: the fewest connections, for its weight', async () => {
    const to = await serve('rr', [3, 1], { [BALANCE_ANNOTATION]: 'least-connections' })
    const hosts: string[] = []
    for (let i = 0; i < 8; i++) hosts.push((await hold(to)).host)
    expect(count(hosts)).toEqual({ localB: 6, localC: 2 })
  })

  test('dh: a service always leads to the same', async () => {
    const to = await serve('dh')
    const hosts = [...(await ask(to, 3)), ...(await ask(to, 3, crowdIp(4, 7)))]
    expect(new Set(hosts).size).toBe(1)
  })

  test('mh: spreads the connections of one client, by its port', async () => {
    expect(new Set(await ask(await serve('mh'), 30))).toEqual(new Set(names))
  })

  test.each(['lblc', 'lblcr'])('%s: serves', async (scheduler) => {
    const hosts = await ask(await serve(scheduler), 3)
    expect(hosts.every((host) => names.some((name) => name === host))).toBe(true)
    expect(node?.saved()[0]).toContain(`-s ${scheduler}`)
  })

  test('weight 0: takes no new connections and keeps those that it has', async () => {
    const to = await serve('rr', [1])
    const { host, conversation } = await hold(to)
    expect(host).toBe('localB')
    const weights = `${pods.localB.ip[4]}=0`
    await node!.put(
      service({ clusterIPs: [to.address], annotations: { [WEIGHTS_ANNOTATION]: weights } }),
      slice([pods.localB.ip[4], pods.localC.ip[4]]),
    )
    expect(await ask(to, 3)).toEqual(['localC', 'localC', 'localC'])
    expect(await conversation.say('still?')).toMatchObject({ greeting: { host: 'localB' } })
  })
})
