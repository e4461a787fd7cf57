// The API server checks objects, but not all servers, nor all versions, check the same. Whatever arrives, the program goes
// on, and what is not theirs stays as it is.

import * as fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { aName, aService, aSlice } from '../support/builders.ts'
import { printProxyTables } from '../support/nft-tables.ts'
import { startProxy, whyNotRun } from '../support/proxy-process.ts'
import { openRig } from '../support/rig.ts'
import { tcpProbe } from '../support/netns/probe.ts'
import type { ModeName } from '../conformance/modes.ts'
import type { Netns } from '../support/netns/netns.ts'
import type { ApiObject } from '../support/builders.ts'
import type { ProxyProcess } from '../support/proxy-process.ts'
import type { Rig } from '../support/rig.ts'

/** JSON can carry what protobuf cannot: wrong types, nulls, missing fields. */
const jsonApi = ['--kube-api-content-type=application/json']

/** Commands to iptables-restore, where a rule should be. */
const INJECTION = 'a\nCOMMIT\n*filter\n:PWNED - [0:0]\n-A INPUT -j PWNED\nCOMMIT\n*nat\n'

const nasty = words(String.raw`
" ' } ; drop \ $(reboot) \u2026 ../.. %s%n 10.2.0.1 0 -1 null constructor __proto__ hasOwnProperty`).concat(
  '',
  ' ',
  '\0',
  '\n',
  '`reboot`',
  INJECTION,
  '\u{1f4a9}',
  'x'.repeat(300),
)
// None of them is used by the honest: who claims an address as a cluster IP has it.
const addresses = words(`
0.0.0.0 255.255.255.255 127.0.0.1 ::1 :: 224.0.0.1 169.254.1.1 fe80::1%eth0 10.1.1.12/24 010.001.001.012 10.1.1
10.1.1.12.1 1e3 ::ffff:10.1.1.12 not-an-ip None fd01:0:0:b::12 10.1.1.12`).concat('')
const numbers = [
  0,
  -1,
  1,
  53,
  80,
  65535,
  65536,
  4294967296,
  1.5,
  Number.MAX_SAFE_INTEGER,
  '80',
  'http',
  null,
  true,
  [],
  {},
]

const anyText = fc.constantFrom<unknown>(...nasty, ...addresses, null, 0, true, [], {})
const anyAddress = fc.constantFrom<unknown>(...addresses, ...nasty, null, 7, {})
const anyNumber = fc.constantFrom<unknown>(...numbers)
const anyProtocol = fc.constantFrom<unknown>('TCP', 'UDP', 'SCTP', 'tcp', 'ICMP', '', null, 6)
const maybe = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined })
const someOf = <T>(value: fc.Arbitrary<T>) =>
  fc.oneof(fc.array(value, { maxLength: 4 }), fc.constantFrom<unknown>(null, 'x', {}))

const aHostileService = fc.record(
  {
    type: fc.constantFrom<unknown>('ClusterIP', 'NodePort', 'LoadBalancer', 'ExternalName', 'Teleport', null),
    clusterIP: anyAddress,
    clusterIPs: someOf(anyAddress),
    externalIPs: someOf(anyAddress),
    ports: someOf(
      fc.oneof(
        fc.record(
          { name: maybe(anyText), port: anyNumber, nodePort: anyNumber, targetPort: anyNumber, protocol: anyProtocol },
          { requiredKeys: [] },
        ),
        anyText,
      ),
    ),
    sessionAffinity: anyText,
    sessionAffinityConfig: fc.oneof(fc.record({ clientIP: fc.record({ timeoutSeconds: anyNumber }) }), anyText),
    externalTrafficPolicy: fc.oneof(fc.constant('Local'), anyText),
    internalTrafficPolicy: fc.oneof(fc.constant('Local'), anyText),
    loadBalancerSourceRanges: someOf(fc.oneof(anyAddress, fc.constantFrom('10.0.0.0/8', '::/0', '10.0.0.0/33', '/'))),
    healthCheckNodePort: anyNumber,
  },
  { requiredKeys: [] },
)
const aHostileSlice = fc.record(
  {
    addressType: fc.constantFrom<unknown>('IPv4', 'IPv6', 'FQDN', '', null),
    ports: someOf(fc.record({ name: anyText, port: anyNumber, protocol: anyProtocol }, { requiredKeys: [] })),
    endpoints: someOf(
      fc.record(
        {
          addresses: someOf(anyAddress),
          conditions: fc.oneof(
            fc.record({ ready: anyText, serving: anyText, terminating: anyText }, { requiredKeys: [] }),
            anyText,
          ),
          nodeName: anyText,
          zone: anyText,
          hints: fc.oneof(
            fc.record({ forZones: someOf(fc.record({ name: anyText })), forNodes: anyText }, { requiredKeys: [] }),
            anyText,
          ),
        },
        { requiredKeys: [] },
      ),
    ),
  },
  { requiredKeys: [] },
)

describe.each<ModeName>(['nftables', 'iptables', 'ipvs', 'userspace'])('%s', (mode) => {
  const reason = whyNotRun(mode)
  if (reason !== undefined) {
    test('objects of any content', ({ skip }) => skip(reason))
    return
  }
  let rig: Rig
  let proxy: ProxyProcess
  const honest = aService({ type: 'NodePort', families: [4, 6] })

  beforeAll(async () => {
    rig = await openRig()
    rig.cluster.put(honest, aSlice(honest, ['localB'], { family: 4 }), aSlice(honest, ['localC'], { family: 6 }))
    const { kubeconfig } = rig.cluster
    proxy = await startProxy({ netns: rig.network.node, mode, kubeconfig, args: jsonApi })
    await rig.settled()
  })
  afterAll(async () => {
    await proxy?.[Symbol.asyncDispose]()
    await rig?.[Symbol.asyncDispose]()
  })

  test('objects of any content neither stop the program nor change what is not theirs', async () => {
    const before = printState(mode, rig.network.node)
    const batches = fc.sample(
      fc.array(fc.tuple(aHostileService, aHostileSlice, maybe(anyText)), { minLength: 30, maxLength: 30 }),
      {
        numRuns: 12,
        seed: 20_251_115,
      },
    )
    for (const [nth, batch] of batches.entries()) {
      const objects = batch.flatMap(([spec, slice, ingress]) => hostileObjects(spec, slice, ingress))
      rig.cluster.put(...objects)
      await rig.settled()
      expect(proxy.ended, `batch ${nth}: ${proxy.logTail(5)}`).toBeUndefined()
      await expectHonestService()
      rig.cluster.remove(...objects)
      await rig.settled()
      expect(printState(mode, rig.network.node), `batch ${nth}`).toBe(before)
    }
  })

  test('names that no API server lets through leave no trace', async () => {
    const before = printState(mode, rig.network.node)
    const objects = nasty
      // What looks like DNS can stand in rules: it is served, whichever kinds may be called so.
      .filter((text) => !text.includes('/') && !/^[-.a-z0-9]*$/.test(text))
      .flatMap((text, i) => {
        const byName = aService({ name: `${text}-${i}`, namespace: text.trim() === '' ? 'default' : text })
        const byPort = aService({ ports: [{ name: text }] })
        return [byName, byPort].flatMap((service, n) => [
          service,
          aSlice(service, ['localB'], { name: `${text}-slice-${i}-${n}` }),
        ])
      })
    rig.cluster.put(...objects)
    await rig.settled()
    expect(proxy.ended, proxy.logTail(5)).toBeUndefined()
    expect(printState(mode, rig.network.node)).toBe(before)
    expect(rig.network.node.run('nft', ['list', 'ruleset'])).not.toContain('PWNED')
    await expectHonestService()
    rig.cluster.remove(...objects)
    await rig.settled()
  })

  test('a service that claims the cluster IP or node port of another does not take it, and leaves no hole when it goes', async () => {
    const before = printState(mode, rig.network.node)
    const thief = aService({
      type: 'NodePort',
      families: [4, 6],
      clusterIPs: honest.spec.clusterIPs,
      ports: honest.spec.ports,
    })
    const slices = [aSlice(thief, ['remoteA'], { family: 4 }), aSlice(thief, ['remoteA'], { family: 6 })]
    rig.cluster.put(thief, ...slices)
    await rig.settled()
    await expectHonestService()
    rig.cluster.remove(...slices, thief)
    await rig.settled()
    await expectHonestService()
    expect(printState(mode, rig.network.node)).toBe(before)
  })

  async function expectHonestService(): Promise<void> {
    for (const [i, address] of honest.spec.clusterIPs.entries()) {
      const answer = await tcpProbe(rig.network.sources.localPod, { address, port: 80 })
      expect(answer).toMatchObject({ kind: 'answered', greeting: { host: i === 0 ? 'localB' : 'localC' } })
    }
  }
})

/** What the mode has in the kernel, in an order that does not depend on history. */
function printState(mode: ModeName, netns: Netns): string {
  if (mode !== 'iptables') return printProxyTables(netns)
  const print = (program: string) => netns.run(program, []).replaceAll(/^#.*$|\[\d+:\d+\]/gm, '')
  return [...print('iptables-save').split('\n'), ...print('ip6tables-save').split('\n')].toSorted().join('\n')
}

function words(text: string): string[] {
  return text.trim().split(/\s+/)
}

function hostileObjects(spec: unknown, slice: object, ingress: unknown): ApiObject[] {
  const name = aName('hostile')
  return [
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name, namespace: 'default', labels: { a: null }, annotations: null },
      spec,
      status: { loadBalancer: { ingress: [{ ip: ingress, ipMode: ingress }] } },
    },
    {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: { name, namespace: 'default', labels: { 'kubernetes.io/service-name': name } },
      ...slice,
    },
  ] as unknown as ApiObject[]
}
