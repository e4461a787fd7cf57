// What a packet meets, which is what it pays: each lookup takes some 0.2 microseconds of a connection, and each hook of the type
// filter a moment of every packet of the node. What comes in addition has to be worth it to all of them.

import { describe, expect, test } from 'vitest'
import { nodeView, service, slice } from '../../../../test/support/kube-objects.ts'
import { ManualClock } from '../../../../test/support/manual-clock.ts'
import { isLoopback, parseCidr, parseIp, ipBytes } from '../../../lib/ip.ts'
import { LIMITS_ANNOTATION } from '../../../model/limits.ts'
import { ProblemLog } from '../../../model/problems.ts'
import { ServiceModel } from '../../../model/service-model.ts'
import { applyOps } from '../../../nftables/apply-ops.ts'
import type { Op, Table } from '../../../nftables/types.ts'
import { walkTable } from '../../../nftables/walk.ts'
import { TableProgrammer } from '../../../table-sync/table-programmer.ts'
import { nftablesPlanner } from './planner.ts'

const NODE = '192.168.0.1'
const POD = { source: '10.64.1.5', inputInterface: 'veth1' }
const HERE = { source: NODE, inputInterface: undefined }
const OUTSIDE = { source: '198.51.100.9', inputInterface: 'eth0' }

const node = nodeView({
  localDetector: { kind: 'cidr', cidrs: [parseCidr('10.64.0.0/16')!] },
  nodePortAddresses: { kind: 'only', addresses: [NODE] },
})

/** As it is after a start: services with two endpoints elsewhere, with affinity or without, and one that has no endpoint. */
function plannedTable(names: readonly ('plain' | 'sticky' | 'limited')[]): Table {
  const model = new ServiceModel({ node, problems: new ProblemLog(() => {}), allowExternalIPs: true, startedMs: 0 })
  const sticky = { sessionAffinity: 'ClientIP', affinityTimeoutSeconds: 10_800 } as const
  const plain = { clusterIPs: ['10.96.0.1'], type: 'NodePort', ports: [{ nodePort: 30_080 }] }
  const limited = { clusterIPs: ['10.96.0.4'], annotations: { [LIMITS_ANNOTATION]: '5, 5 per client' } }
  const wishes = { plain, sticky: { clusterIPs: ['10.96.0.2'], ...sticky }, limited }
  model.setService(service({ name: 'empty', clusterIPs: ['10.96.0.3'] }))
  for (const name of names) {
    model.setService(service({ name, ...wishes[name] }))
    const endpoints = ['10.64.7.1', '10.64.7.2'].map((address) => ({ address, nodeName: 'elsewhere' }))
    model.setSlice(slice(endpoints, { name: `${name}-1`, serviceName: name }))
  }
  let table: Table | undefined
  const driver = {
    apply: (ops: readonly Op[]) => {
      table = applyOps('ip', nftablesPlanner.table, table, ops)
      return { bytes: 0 }
    },
    read: () => table,
    readElements: () => [],
    close: () => {},
  }
  model.takeChanges()
  // A new table is made in one turn.
  void new TableProgrammer({ planner: nftablesPlanner, driver, clock: new ManualClock() }).syncAll(node, model.views())
  return table!
}

const table = plannedTable(['plain'])
const withAffinity = plannedTable(['plain', 'sticky'])
const withLimits = plannedTable(['plain', 'limited'])

/** The sets that the first packet of a TCP connection is looked up in, on its whole way. */
function lookups({ source, inputInterface }: typeof POD | typeof HERE, to: string, through = table): string[] {
  const names: string[] = []
  const elements = {
    get: (name: string) => {
      names.push(name)
      return through.elements.get(name)
    },
  }
  const [address = '', port] = to.split(':')
  const packet = {
    inputInterface,
    source: ipBytes(source),
    sourcePort: 40_000,
    destination: ipBytes(address),
    destinationPort: Number(port),
    protocol: 'TCP' as const,
  }
  walkTable({ ...through, elements }, packet, {
    isLocalAddress: (each) => isLoopback(each) || each === parseIp(NODE),
    random: () => 0,
    now: () => 0,
    dynamicElements: new Map(),
  })
  return names
}

describe('the first packet of a connection is looked up in', () => {
  test.each([
    [
      'to a cluster IP, from a pod',
      lookups(POD, '10.96.0.1:80'),
      ['served-ips', 'served-ips-special', 'served-ips-2', 'service-endpoints', 'hairpin-connections'],
    ],
    [
      'to a cluster IP, from the node',
      lookups(HERE, '10.96.0.1:80'),
      ['cluster-ips', 'served-ips', 'served-ips-special', 'served-ips-2', 'service-endpoints'],
    ],
    [
      'to a node port, from outside',
      lookups(OUTSIDE, `${NODE}:30080`),
      [
        'cluster-ips',
        'served-ips',
        'nodeport-ips',
        'served-nodeports',
        'served-nodeports-special',
        'served-nodeports-2',
        'nodeport-endpoints',
      ],
    ],
    [
      'to a cluster IP, from a pod, where another service has affinity',
      lookups(POD, '10.96.0.1:80', withAffinity),
      [
        'served-ips',
        'served-ips-special',
        'served-ips-2',
        'service-endpoints',
        'service-affinity-record-tcp',
        'hairpin-connections',
      ],
    ],
    [
      'to a service with affinity, from a pod that it does not know',
      lookups(POD, '10.96.0.2:80', withAffinity),
      [
        'served-ips',
        'served-ips-special',
        'served-ips-local',
        'served-ips-masquerade',
        'service-affinity',
        'served-ips-2',
        'service-endpoints',
        'service-affinity-record-tcp',
        'hairpin-connections',
      ],
    ],
    [
      'to a cluster IP, from a pod, where another service has limits',
      lookups(POD, '10.96.0.1:80', withLimits),
      lookups(POD, '10.96.0.1:80'),
    ],
    [
      'to a service with limits, from a pod',
      lookups(POD, '10.96.0.4:80', withLimits),
      [
        'served-ips',
        'served-ips-special',
        'limited-services',
        'served-ips-local',
        'served-ips-masquerade',
        'service-affinity',
        'served-ips-2',
        'service-endpoints',
        'hairpin-connections',
      ],
    ],
    [
      'to a pod, from a pod',
      lookups(POD, '10.64.7.1:8080'),
      ['served-ips', 'nodeport-ips', 'no-endpoint-services-all', 'cluster-ips'],
    ],
    [
      'to the node, from outside',
      lookups(OUTSIDE, `${NODE}:22`),
      [
        'cluster-ips',
        'served-ips',
        'nodeport-ips',
        'served-nodeports',
        'no-endpoint-nodeports-all',
        'no-endpoint-services-all',
      ],
    ],
    [
      'to a service without endpoints, from a pod',
      lookups(POD, '10.96.0.3:80'),
      ['served-ips', 'nodeport-ips', 'no-endpoint-services-all', 'no-endpoint-services-reject'],
    ],
  ])('%s', (_, found, expected) => {
    expect(found).toEqual(expected)
  })
})

test('a packet of a connection that is known meets one rule in each filter hook, and none before it is routed', () => {
  const filters = [...table.chains.values()].filter(({ hook }) => hook?.type === 'filter')
  expect(filters.map(({ hook, rules }) => [hook!.hook, rules.length])).toEqual([
    ['input', 1],
    ['forward', 1],
    ['output', 1],
  ])
})
