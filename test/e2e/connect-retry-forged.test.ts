// No packet, forged or true, talks the proxy into ejecting an endpoint that answers, or into ending a connection that is open.

import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { node, pods } from '../support/addresses.ts'
import { eventually } from '../support/eventually.ts'
import { Forger } from '../support/netns/forged-packets.ts'
import { aService, aSlice } from '../support/builders.ts'
import { openTcp, tcpProbe } from '../support/netns/probe.ts'
import { hostOf, openRetryRig, patient } from './connect-retry.suite.ts'

const retry = openRetryRig('nftables')
const localPod = () => retry().rig.network.sources.localPod
const ECHO_PORT = 8080
/** Another pod's: the forger's own kernel would answer what comes back for its own. */
const VICTIM = pods.remoteA.ip[4]
let port = 20_000

async function wasEjected(address: string): Promise<boolean> {
  return ((await retry().proxy().ask('/statusz'))?.body ?? '').includes(`${address}:${ECHO_PORT} ejected`)
}

const tricks = {
  'SYNs in pairs': 'silent',
  'resets in the name of the endpoint': 'refused',
  'ICMP errors': 'unreachable',
} as const

test.for(Object.entries(tricks))('%s have a healthy endpoint suspected, and not ejected', async ([trick, reason]) => {
  const { target, addresses } = await retry().serve({ healthy: 2 })
  const frontend = { ip: target.address, port: target.port }
  using forger = new Forger(retry().rig.network.pods.localB)
  const metric = (what: string) =>
    retry().metric(`kubeproxyts_connect_retry_${what}_total{ip_family="IPv4",reason="${reason}"}`)
  const [suspected, ejected] = [await metric('suspected'), await metric('ejected')]
  await eventually('both have been suspected', async () => {
    for (let i = 0; i < 20; i++) {
      const from = { ip: VICTIM, port: port++ }
      forger.syn(from, frontend)
      // Which endpoint was chosen, the forger does not know.
      for (const ip of addresses) {
        const endpoint = { ip, port: ECHO_PORT }
        if (trick === 'SYNs in pairs') forger.syn(from, frontend)
        else if (trick === 'ICMP errors') forger.unreachable(node.bridgeIp[4], from, endpoint)
        else forger.refusal(endpoint, from)
      }
      await sleep(10)
    }
    for (const address of addresses) expect(await wasEjected(address)).toBe(false)
    const more = (await metric('suspected')) - suspected
    return more >= 4 ? undefined : `${more} suspicions`
  })
  expect(await metric('ejected')).toBe(ejected)
  const where = new Set<string>()
  for (let i = 0; i < 24; i++) {
    const answer = await tcpProbe(localPod(), target, patient())
    where.add(answer.kind === 'answered' ? hostOf(answer.greeting.at) : answer.kind)
  }
  expect(where).toEqual(new Set(addresses))
})

test('a connection that is open goes on, whatever is sent in its name', async () => {
  const { target, addresses } = await retry().serve({ healthy: 2 })
  const { answer, conversation } = await openTcp(localPod(), target, patient())
  if (answer.kind !== 'answered') throw new Error(answer.kind)
  const client = { ip: answer.client, port: answer.clientPort }
  const endpoint = { ip: hostOf(answer.greeting.at), port: ECHO_PORT }
  expect(addresses).toContain(endpoint.ip)
  // What is for a neighbour goes over the bridge: the forger sends it to the node instead.
  const { localB } = retry().rig.network.pods
  localB.ip([`route add ${client.ip} via ${node.bridgeIp[4]}`])
  using forger = new Forger(localB)
  for (let i = 0; i < 5; i++) {
    forger.syn(client, { ip: target.address, port: target.port })
    forger.refusal(endpoint, client)
    forger.unreachable(node.bridgeIp[4], client, endpoint)
    await sleep(20)
    expect((await conversation.say('still there?')).kind).toBe('answered')
  }
  conversation.close()
  for (const address of addresses) expect(await wasEjected(address)).toBe(false)
})

test('one whose second SYN is answered goes on, though this node is not answered there', async () => {
  const { target, addresses } = await retry().serve({ healthy: 2 })
  // It answers a client's second SYN, and never this node.
  retry().rig.network.pods.localC.run(
    'nft',
    ['-f', '-'],
    `table ip slow {
      set seen {
        type ipv4_addr . inet_service
        flags dynamic, timeout
        timeout 1m
      }
      chain input {
        type filter hook input priority 0;
        ip daddr != { ${addresses.join(', ')} } accept
        ip saddr { ${node.bridgeIp[4]}, ${node.ip[4]} } drop
        tcp flags & (syn | ack) == syn ip saddr . tcp sport != @seen add @seen { ip saddr . tcp sport } drop
      }
    }`,
  )
  const { answer, conversation } = await openTcp(localPod(), target, patient())
  if (answer.kind !== 'answered') throw new Error(answer.kind)
  // For longer than a probe takes.
  for (let i = 0; i < 15; i++) {
    expect((await conversation.say('still there?')).kind).toBe('answered')
    await sleep(100)
  }
  conversation.close()
})

test('an endpoint that is an address of this node is not tried, though its clients are tried again', async () => {
  const service = aService({ ports: [{ targetPort: 8099 }] })
  const endpoints = [node.ip[4], node.secondIp[4]].map((address) => ({ address, nodeName: node.name }))
  retry().rig.cluster.put(service, aSlice(service, endpoints))
  await retry().rig.settled()
  const metric = (what: string) => retry().metric(`kubeproxyts_connect_retry_${what}_total{`)
  const [suspected, retried] = [await metric('suspected'), await metric('retried')]
  const answer = await tcpProbe(localPod(), { address: service.spec.clusterIP, port: 80 }, patient())
  expect(answer).toEqual({ kind: 'refused' })
  expect(await metric('retried')).toBeGreaterThan(retried)
  expect(await metric('suspected')).toBe(suspected)
})
