import { describe, expect, it } from 'vitest'
import { answerQuestion, type NamedCluster } from './cluster-names.ts'
import { recordTypes, type RecordData } from './dns-message.ts'
import type { EndpointSlice } from '../apiserver/objects/endpoints.ts'
import type { Service } from '../apiserver/objects/service.ts'

const service = (name: string, spec: object) =>
  ({ metadata: { name, namespace: 'default' }, spec }) as unknown as Service
const all = [
  service('web', {
    clusterIPs: ['10.96.0.5', 'fd00:96::5'],
    ports: [
      { name: 'http', port: 80, protocol: 'TCP' },
      { name: 'dns', port: 53, protocol: 'UDP' },
    ],
  }),
  service('db', { clusterIP: 'None', clusterIPs: ['None'], ports: [{ name: 'sql', port: 5432 }] }),
  service('away', { type: 'ExternalName', externalName: 'example.test' }),
]
const slice = {
  metadata: { name: 'db-1', namespace: 'default', labels: { 'kubernetes.io/service-name': 'db' } },
  endpoints: [
    { addresses: ['10.1.0.2'], conditions: { ready: true }, hostname: 'db-0' },
    { addresses: ['10.1.0.3'], conditions: { ready: true } },
    { addresses: ['10.1.0.4'], conditions: { ready: false } },
  ],
  ports: [{ name: 'sql', port: 5432, protocol: 'TCP' }],
} as unknown as EndpointSlice

const cluster: NamedCluster = {
  hasNamespace: (name) => name === 'default',
  service: (namespace, name) =>
    namespace === 'default' ? all.find(({ metadata }) => metadata.name === name) : undefined,
  slices: (_, name) => (name === 'db' ? [slice] : []),
  serviceAt: (address) => all.find(({ spec }) => spec.clusterIPs?.includes(address)),
  slicesWith: (address) => (slice.endpoints?.some(({ addresses }) => addresses.includes(address)) ? [slice] : []),
}

function format(data: RecordData): string {
  const { type, ...rest } = data
  return `${type} ${Object.values(rest).join(' ')}`
}

function ask(name: string, type: keyof typeof recordTypes): string[] | 'no such name' {
  const { code, answers } = answerQuestion(cluster, name, recordTypes[type])
  return code === 0 ? answers.map(({ data }) => format(data)) : 'no such name'
}

describe('answerQuestion()', () => {
  it.each([
    ['web.default.svc.cluster.local', 'A', ['A 10.96.0.5']],
    ['web.default.svc.cluster.local', 'AAAA', ['AAAA fd00:96::5']],
    ['_http._tcp.web.default.svc.cluster.local', 'SRV', ['SRV 80 web.default.svc.cluster.local']],
    ['_dns._udp.web.default.svc.cluster.local', 'SRV', ['SRV 53 web.default.svc.cluster.local']],
    ['_http._udp.web.default.svc.cluster.local', 'SRV', 'no such name'],
    ['web.default.svc.cluster.local', 'TXT', []],
    ['db.default.svc.cluster.local', 'A', ['A 10.1.0.2', 'A 10.1.0.3']],
    ['db.default.svc.cluster.local', 'AAAA', []],
    ['db-0.db.default.svc.cluster.local', 'A', ['A 10.1.0.2']],
    ['10-1-0-3.db.default.svc.cluster.local', 'A', ['A 10.1.0.3']],
    ['10-1-0-4.db.default.svc.cluster.local', 'A', 'no such name'],
    [
      '_sql._tcp.db.default.svc.cluster.local',
      'SRV',
      ['SRV 5432 db-0.db.default.svc.cluster.local', 'SRV 5432 10-1-0-3.db.default.svc.cluster.local'],
    ],
    ['away.default.svc.cluster.local', 'A', ['CNAME example.test']],
    ['5.0.96.10.in-addr.arpa', 'PTR', ['PTR web.default.svc.cluster.local']],
    ['2.0.1.10.in-addr.arpa', 'PTR', ['PTR db-0.db.default.svc.cluster.local']],
    [`${'5.0.0.0.'.padEnd(40, '0.')}6.9.0.0.0.0.d.f.ip6.arpa`, 'PTR', 'no such name'],
    ['1.1.1.10.in-addr.arpa', 'PTR', 'no such name'],
    ['default.svc.cluster.local', 'A', []],
    ['cluster.local', 'A', []],
    ['nope.svc.cluster.local', 'A', 'no such name'],
    ['nope.default.svc.cluster.local', 'A', 'no such name'],
    ['x.web.default.svc.cluster.local', 'A', 'no such name'],
    ['example.test', 'A', 'no such name'],
    ['example.test.default.svc.cluster.local', 'A', 'no such name'],
    ['dns-version.cluster.local', 'TXT', ['TXT 1.1.0']],
  ] as const)('%s %s', (name, type, expected) => expect(ask(name, type)).toEqual(expected))

  it('says with SRV where the target is, and with nothing which zone it is', () => {
    const found = answerQuestion(cluster, '_http._tcp.web.default.svc.cluster.local', recordTypes.SRV)
    expect(found.additional.map(({ data }) => format(data))).toEqual(['A 10.96.0.5', 'AAAA fd00:96::5'])
    expect(answerQuestion(cluster, 'example.test', recordTypes.A).authority[0]?.data.type).toBe('SOA')
  })
})
