import { expect, test } from 'vitest'
import { type Check, type Facts, phases, rows } from './checks.ts'
import { endpointsOf } from './endpoints.ts'
import { planChecks } from './plan-checks.ts'
import { someFacts } from '../../test/support/probe-facts.ts'

const allChecks = (facts: Facts): Check[] => phases.flatMap((phase) => planChecks(facts, phase))
const find = (facts: Facts, id: string): Check | undefined => allChecks(facts).find((check) => check.id === id)

test.each([1, 2, 3, 7])('with %i nodes every check has an id of its own, and an address', (count) => {
  const checks = allChecks(someFacts(count))
  expect(new Set(checks.map(({ id }) => id)).size).toBe(checks.length)
  expect(checks.filter(({ dial }) => dial.address === '' || !(dial.port > 0))).toEqual([])
  // A node is the first of each client and of each proxy.
  for (const kind of ['pod', 'node']) {
    expect(new Set(checks.filter(({ client }) => client.kind === kind).map(({ client }) => client.node)).size).toBe(
      count,
    )
  }
})

test('ids do not depend on the addresses that a cluster gives out', () => {
  const facts = someFacts(3)
  const other: Facts = {
    ...facts,
    services: { ...facts.services, plain: { ...facts.services.plain, clusterIPs: ['10.96.9.9', 'fd00:96::99'] } },
  }
  expect(allChecks(other).map(({ id }) => id)).toEqual(allChecks(facts).map(({ id }) => id))
})

test('each row is tried over each family, and from pods and nodes, where it can be', () => {
  const checks = allChecks(someFacts(3))
  const found = rows.map((row) => {
    const own = checks.filter((check) => check.row === row)
    const values = (of: (check: Check) => string) => [...new Set(own.map(of))].sort().join(' ')
    return `${row}: ${values(({ client }) => client.kind)}, ${values(({ protocol }) => protocol)}, ${values(({ family }) => String(family))}`
  })
  expect(found).toMatchInlineSnapshot(`
    [
      "pod network: node pod, TCP UDP, 4 6",
      "API server: node pod, TCP, 4 6",
      "cluster IP: node pod, TCP UDP, 4 6",
      "hairpin: pod, TCP UDP, 4 6",
      "external IP: node pod, TCP UDP, 4 6",
      "load balancer IP: node pod, TCP UDP, 4 6",
      "node port: node pod, TCP UDP, 4 6",
      "session affinity: node pod, TCP UDP, 4 6",
      "source ranges: pod, TCP UDP, 4 6",
      "internal policy Local: node pod, TCP UDP, 4 6",
      "external policy Local: node pod, TCP UDP, 4 6",
      "client address kept: node, TCP UDP, 4 6",
      "health check port: node, TCP, 4 6",
      "no endpoints: node pod, TCP UDP, 4 6",
      "dead endpoint: node pod, TCP, 4 6",
      "endpoint replaced: node pod, TCP UDP, 4 6",
      "open UDP socket: node pod, UDP, 4 6",
      "terminating endpoint: node pod, TCP UDP, 4 6",
      "last endpoint gone: node pod, TCP UDP, 4 6",
      "endpoint back: node pod, TCP UDP, 4 6",
    ]
  `)
})

test('the last node has no endpoint of Services with policy Local', () => {
  const facts = someFacts(3)
  expect(endpointsOf('external-local', facts.nodes, 'start').map(({ node }) => node)).toEqual(['node-1', 'node-2'])
  expect(
    find(facts, 'start: internal policy Local, cluster IP, TCP, IPv4, from pod on node-2, at node-2')?.expected,
  ).toEqual({
    kind: 'answer',
    by: ['pod-2:8080'],
  })
  expect(
    find(facts, 'start: internal policy Local, cluster IP, TCP, IPv4, from pod on node-3, at node-3')?.expected,
  ).toEqual({
    kind: 'nothing',
  })
  // From another node: the endpoint there answers and sees the client, or nobody does.
  expect(
    find(facts, 'start: client address kept, node port, UDP, IPv6, from node on node-1, at node-2')?.expected,
  ).toEqual({
    kind: 'answer',
    by: ['pod-2:8080'],
    keepsClient: true,
  })
  expect(
    find(facts, 'start: external policy Local, node port, UDP, IPv6, from node on node-2, at node-3')?.expected,
  ).toEqual({
    kind: 'nothing',
  })
})

test('one pod may use the Service with source ranges, pods of other nodes may not', () => {
  const ranges = allChecks(someFacts(3)).filter(({ row, family }) => row === 'source ranges' && family === 4)
  expect(ranges.map(({ client, protocol, expected }) => `${client.node} ${protocol} ${expected.kind}`)).toEqual([
    'node-1 TCP answer',
    'node-1 UDP answer',
    'node-2 TCP nothing',
    'node-2 UDP nothing',
    'node-3 TCP nothing',
    'node-3 UDP nothing',
  ])
})

test('a cluster of one node has two endpoints: two ports of one pod', () => {
  const { nodes } = someFacts(1)
  const names = (phase: (typeof phases)[number]) =>
    endpointsOf('change', nodes, phase).map(({ port, state }) => [port, state])
  expect(endpointsOf('plain', nodes, 'start').map(({ port }) => port)).toEqual([8080, 8081])
  expect(names('start')).toEqual([[8080, undefined]])
  expect(names('replaced')).toEqual([[8081, undefined]])
  expect(names('terminating')).toEqual([[8081, 'terminating']])
  expect(names('gone')).toEqual([])
})

test('from outside, node ports of all nodes are dialled', () => {
  const checks = planChecks({ ...someFacts(2, [4]), outside: true }, 'start').filter(
    ({ client }) => client.kind === 'outside',
  )
  expect(checks.map(({ row, protocol, proxy, expected }) => `${row} ${protocol} ${proxy} ${expected.kind}`)).toEqual([
    'node port TCP node-1 answer',
    'client address kept TCP node-1 answer',
    'node port TCP node-2 answer',
    'external policy Local TCP node-2 nothing',
    'node port UDP node-1 answer',
    'client address kept UDP node-1 answer',
    'node port UDP node-2 answer',
    'external policy Local UDP node-2 nothing',
  ])
})

test('rows can be left out', () => {
  const checks = allChecks({ ...someFacts(2), skip: new Set(['external IP', 'node port']) })
  expect(checks.filter(({ row }) => row === 'external IP' || row === 'node port')).toEqual([])
})

test('the work grows with the nodes, not with their pairs', () => {
  const of = (count: number) => allChecks(someFacts(count)).length
  expect(of(40)).toBeLessThan(of(20) * 2.1)
})
