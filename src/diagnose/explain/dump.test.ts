import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { casesOfGo, goldenNode } from '../../../test/support/golden-tables.ts'
import { nodeAddresses } from '../../../test/support/addresses.ts'
import { complaintsBySchema } from '../../../test/support/json-schema.ts'
import type { Family } from '../../lib/ip.ts'
import { modeNamed } from '../../modes/all.ts'
import { type Dump, knownFromDump, parseDump } from './dump.ts'
import { explain, prepare } from './explain.ts'
import type { Explanation } from './explanation.ts'
import type { Known } from './known.ts'
import { readManifestObjects } from './read-known.ts'

const schema = JSON.parse(readFileSync(new URL('../../../docs/reference/explain.schema.json', import.meta.url), 'utf8'))

function testdata(name: string): string {
  return readFileSync(new URL(`testdata/${name}`, import.meta.url), 'utf8')
}

function byDump(dump: Dump, from: string, to: string): Explanation {
  const known = knownFromDump(dump, ['10.3.0.10', 'fd03::10'], modeNamed)
  return explain(prepare(known, { from, to }), dump.state)
}

function endsOf({ kernel }: Explanation): string[] {
  return kernel!.ways.map((way) =>
    way.outcome === 'to' ? `${way.destination}${way.masqueraded ? ' masqueraded' : ''}` : way.outcome,
  )
}

// Written by kube-proxy 1.36 in mode nftables, listed by nft -j.
describe('a dump of the Go kube-proxy in mode nftables', () => {
  const dump = parseDump(testdata('go-kube-proxy.json'), 'dump.json')

  it.each([
    ['10.1.0.77', '10.2.255.1:80', ['10.1.0.12:8080', '10.1.1.11:8080']],
    ['10.1.0.77', '10.2.255.1:80/udp', ['10.1.0.12:8080', '10.1.1.11:8080']],
    // A pod that comes to itself is masqueraded.
    ['10.1.0.12', '10.2.255.2:80', ['10.1.0.12:8080 masqueraded', '10.1.0.13:8080']],
    // From outside the cluster.
    ['10.3.0.100', '10.2.255.1:80', ['10.1.0.12:8080 masqueraded', '10.1.1.11:8080 masqueraded']],
    ['10.3.0.100', '10.3.0.10:32001', ['10.1.0.12:8080 masqueraded', '10.1.1.11:8080 masqueraded']],
    ['10.1.0.77', '10.2.255.3:80', ['reject']],
    ['10.1.0.77', '10.2.255.1:81', ['reject']],
    ['10.1.0.77', '10.2.0.99:80', ['drop']],
    ['10.1.0.77', '192.0.2.1:80', ['untouched']],
  ])('leads a packet from %s to %s', (from, to, ends) => {
    const explanation = byDump(dump, from, to)
    expect(endsOf(explanation)).toEqual(ends)
    expect(explanation.agreement).toBe('not compared')
    expect(complaintsBySchema(schema, explanation)).toEqual([])
  })

  it('shows rules and elements in words', () => {
    const steps = byDump(dump, '10.1.0.77', '10.2.255.1:80').kernel!.ways[0]!.steps
    const text = steps.map(({ place, rule, found }) => [place, rule, ...found].join(' | ')).join('\n')
    expect(text).toContain(
      'kube-proxy services | ip daddr . meta l4proto . th dport vmap @service-ips | service-ips: 10.2.255.1 . tcp . 80 : goto service-747KVBFX-default/web/tcp/tcp',
    )
  })
})

// The golden inputs, and what the Go kube-proxy wrote for them.
describe.each(casesOfGo)('a dump of the Go kube-proxy in mode iptables, %s', (name) => {
  const folder = new URL(`../../../test/golden/${name}/`, import.meta.url).pathname
  const sections = readFileSync(`${folder}iptables-go.save`, 'utf8').split(/^# IPv6$/m)

  it.each([4, 6] as const)('does what is decided for the same objects, IPv%d', (family) => {
    const dump = parseDump(sections[family === 4 ? 0 : 1]!, 'iptables-save')
    const known = knownOf(folder, family)
    const dialled = known.services.flatMap((service) =>
      [...service.clusterIPs, ...service.externalIPs, ...service.ingress.map(({ ip }) => ip)]
        .filter((ip) => ip.includes(':') === (family === 6))
        .flatMap((ip) =>
          service.ports.map(
            ({ port, protocol }) => `${family === 6 ? `[${ip}]` : ip}:${port}/${protocol.toLowerCase()}`,
          ),
        ),
    )
    const clients =
      family === 4
        ? ['10.1.0.11', '10.1.1.12', '203.0.113.9', '198.51.100.200', 'node']
        : ['fd01:0:0:a::11', '2001:db8::9', 'node']
    // Not every input has both families.
    if (family === 4) expect(dialled.length).toBeGreaterThan(0)
    for (const to of dialled) {
      for (const from of clients) {
        const explanation = explain(prepare(known, { from, to }), dump.state)
        expect(explanation.kernel!.differences, `${from} to ${to}: ${explanation.headline}`).toEqual([])
        expect(complaintsBySchema(schema, explanation)).toEqual([])
      }
    }
  })
})

function knownOf(folder: string, family: Family): Known {
  const { services, slices } = readManifestObjects(`${folder}input.yaml`)
  return {
    source: 'golden objects',
    hasObjects: true,
    mode: modeNamed('iptables'),
    nodes: { [family]: { ...goldenNode(family), nodePortAddresses: { kind: 'all' } } },
    machineAddresses: nodeAddresses,
    services,
    slices,
    allowExternalIPs: true,
    localhostNodePorts: true,
    connectRetry: false,
    ejected: new Map(),
    otherNodes: [],
    pods: [],
  }
}

describe('parseDump()', () => {
  it.each([
    ['table ip kube-proxy {\n}', /nft needs -j/],
    ['hello', /must be what/],
    ['{"nftables":[{"table":{"family":"ip","name":"mine"}}]}', /no table kube-proxy .* but ip mine/],
    ['*nat\n:PREROUTING ACCEPT [0:0]\nCOMMIT\n', /no chain KUBE-SERVICES/],
  ])('says what is wrong with %j', (text, message) => {
    expect(() => parseDump(text, 'dump')).toThrow(message)
  })
})
