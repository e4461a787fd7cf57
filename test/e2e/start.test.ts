// Starts under circumstances that are not as they should be.

import { afterEach, expect, test } from 'vitest'
import { pods } from '../support/addresses.ts'
import { aService, aSlice } from '../support/builders.ts'
import { eventually } from '../support/eventually.ts'
import { listTables } from '../support/nft-tables.ts'
import { healthzPort, proxyFlags, ProxyProcess } from '../support/proxy-process.ts'
import { openRig } from '../support/rig.ts'
import { serveEcho } from '../support/netns/echo-server.ts'
import { aShortWhile, tcpProbe } from '../support/netns/probe.ts'
import type { ApiService } from '../support/builders.ts'
import type { Rig } from '../support/rig.ts'

let rig: Rig
let proxy: ProxyProcess | undefined
afterEach(async () => {
  await proxy?.[Symbol.asyncDispose]()
  await rig[Symbol.asyncDispose]()
  proxy = undefined
})

test('a health port that is taken does not keep the program from its work, and is taken when it is free', async () => {
  rig = await openRig()
  const squatter = await serveEcho(rig.network.node, 'squatter', { tcp: [healthzPort], udp: [] })
  proxy = start()
  await rig.settled()
  expect(proxy.log()).toContain(`${healthzPort}`)
  await squatter[Symbol.asyncDispose]()
  await proxy.ready()
})

test('with --bind-address-hard-fail a health port that is taken ends the program', async () => {
  rig = await openRig()
  const squatter = await serveEcho(rig.network.node, 'squatter', { tcp: [healthzPort], udp: [] })
  proxy = start(['--bind-address-hard-fail'])
  expect(await proxy.exited).toBe('1')
  expect(proxy.log()).toContain(`${healthzPort}`)
  await squatter[Symbol.asyncDispose]()
})

test('a node name that matches nothing is reported loudly, and after half a minute service begins all the same', async () => {
  rig = await openRig()
  const service = put(aService())
  const startedMs = performance.now()
  proxy = start(['--hostname-override=nobody'])
  await rig.settled(40_000)
  expect(performance.now() - startedMs).toBeGreaterThan(30_000)
  expect(proxy.log()).toContain('Waiting before the first rule: there is no Node')
  expect(proxy.log()).toContain('Going on without: there is no Node')
  // Nobody shall be sent to a node that is not known.
  expect((await proxy.health())?.status).toBe(503)
  expect(await answererOf(service)).toBe('localB')
  await eventually('the log tells', () => {
    const lines = proxy?.log().split('\n') ?? []
    return lines.some((line) => /^E.*nobody/.test(line)) ? undefined : lines.slice(-5).join('\n')
  })
})

test('an old API server, without EndpointSlices and ServiceCIDRs, is served from Endpoints', async () => {
  rig = await openRig({ without: ['endpointslices', 'servicecidrs'] })
  const service = aService()
  rig.cluster.put(service)
  const subsets = (...names: (keyof typeof pods)[]) => ({
    kind: 'Endpoints',
    metadata: { name: service.metadata.name, namespace: 'default' },
    subsets: [
      {
        addresses: names.map((name) => ({ ip: pods[name].ip[4], nodeName: pods[name].nodeName })),
        ports: [{ port: 8080, protocol: 'TCP' }],
      },
    ],
  })
  rig.cluster.server.store.apply(subsets('localB'))
  proxy = start()
  await eventually('localB answers', async () => complainUnless(await answererOf(service), 'localB'))
  rig.cluster.server.store.apply(subsets('remoteA'))
  await eventually('remoteA answers', async () => complainUnless(await answererOf(service), 'remoteA'))
})

test('--init-only ends well and leaves no rules', async () => {
  rig = await openRig()
  proxy = start(['--init-only'])
  expect(await proxy.exited, proxy.log()).toBe('0')
  expect(listTables(rig.network.node)).toEqual([])
})

test('an API server that says no is asked again until it says yes', async () => {
  let allowed = false
  rig = await openRig({ authorize: () => allowed })
  const service = put(aService())
  proxy = start()
  await eventually('the log tells', () => (/401|Unauthorized/.test(proxy?.log() ?? '') ? undefined : 'not yet'))
  allowed = true
  await eventually('the service is served', async () => complainUnless(await answererOf(service), 'localB'), {
    withinMs: 30_000,
  })
})

function start(args: readonly string[] = []): ProxyProcess {
  const { node } = rig.network
  return new ProxyProcess(node, proxyFlags({ netns: node, mode: 'nftables', kubeconfig: rig.cluster.kubeconfig, args }))
}

function put(service: ApiService): ApiService {
  rig.cluster.put(service, aSlice(service, ['localB']))
  return service
}

async function answererOf(service: ApiService): Promise<string> {
  const to = { address: service.spec.clusterIP, port: 80 }
  const answer = await tcpProbe(rig.network.sources.localPod, to, aShortWhile())
  return answer.kind === 'answered' ? answer.greeting.host : answer.kind
}

function complainUnless(value: string, expected: string): string | undefined {
  return value === expected ? undefined : `it is ${value}`
}
