// The test network without any proxy: what fails here is no fault of the program.

import { afterAll, beforeAll, expect, test } from 'vitest'
import { control, crowdIp, node, pods, unservedIp, unservedPort } from '../support/addresses.ts'
import { tcpProbe, udpProbe } from '../support/netns/probe.ts'
import { sctpProbe } from '../support/netns/sctp.ts'
import { openTestNetwork } from '../support/netns/test-network.ts'
import type { TestNetwork } from '../support/netns/test-network.ts'

let network: TestNetwork
beforeAll(async () => {
  network = await openTestNetwork()
})
afterAll(() => network[Symbol.asyncDispose]())

test.for([4, 6] as const)('every source reaches every pod with its own address over IPv%d', async (family) => {
  for (const [source, netns] of Object.entries(network.sources)) {
    for (const pod of Object.values(pods)) {
      const to = { address: pod.ip[family], port: 8080 }
      for (const probe of [tcpProbe, udpProbe, sctpProbe]) {
        const answer = await probe(netns, to)
        expect(answer, `${source} to ${pod.name}`).toMatchObject({ kind: 'answered', greeting: { host: pod.name } })
        if (answer.kind === 'answered') expect(answer.greeting.seenAs).toBe(answer.client)
      }
    }
  }
})

test.for([4, 6] as const)('a client may take any address of the crowd over IPv%d', async (family) => {
  const from = crowdIp(family, 200)
  const to = { address: pods.localB.ip[family], port: 9090 }
  expect(await tcpProbe(network.external, to, { from })).toMatchObject({ greeting: { seenAs: from, port: 9090 } })
})

test.for([4, 6] as const)(
  'the control namespace answers for addresses that no proxy serves, over IPv%d',
  async (family) => {
    const to = { address: unservedIp(family, 1), port: unservedPort }
    for (const netns of [network.sources.localPod, network.sources.otherLocalPod]) {
      expect(await tcpProbe(netns, to)).toMatchObject({ kind: 'answered', greeting: { host: control.name } })
    }
  },
)

test.for([4, 6] as const)('a closed port refuses, an address behind the hole is silent, over IPv%d', async (family) => {
  const { localPod } = network.sources
  const closed = { address: node.ip[family], port: 9 }
  const nobody = { address: family === 4 ? '10.2.0.99' : 'fd02::99', port: 80 }
  expect(await tcpProbe(localPod, closed)).toEqual({ kind: 'refused' })
  expect(await udpProbe(localPod, closed)).toEqual({ kind: 'refused' })
  expect(await tcpProbe(localPod, nobody, { timeoutMs: 200 })).toEqual({ kind: 'silent' })
  expect(await udpProbe(localPod, nobody, { timeoutMs: 200 })).toEqual({ kind: 'silent' })
})
