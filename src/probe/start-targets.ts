// What is dialled while nothing changes.

import type { TestNode } from './checks.ts'
import { endpointName, endpointOn, endpointsOf } from './endpoints.ts'
import { externalIp, loadBalancerIp, SERVICE_PORT } from './objects.ts'
import {
  type Asked,
  atClusterIp,
  atNodePort,
  localNames,
  namesOf,
  ofFamily,
  ownNode,
  SILENCE_MS,
  type Target,
  times,
} from './targets.ts'

/** Without any Service: what fails here is not the proxy's fault. */
export function networkTargets({ facts, client, family }: Asked): Target[] {
  return endpointsOf('plain', facts.nodes, 'start').map((endpoint) => ({
    row: 'pod network',
    via: endpointName(endpoint),
    to: endpoint.node,
    proxy: client.node,
    service: undefined,
    address: ofFamily(endpoint.ips, family),
    port: endpoint.port,
    expected: { kind: 'answer', by: [endpointName(endpoint)] },
  }))
}

export function clusterTargets(asked: Asked): Target[] {
  const { facts, client, family } = asked
  const plain = namesOf('plain', facts)
  const targets: Target[] = [
    atClusterIp(asked, 'plain', {
      row: 'cluster IP',
      expected: { kind: 'answer', by: plain, spread: 'each' },
      dial: { times: times.spread },
    }),
    atClusterIp(asked, 'sticky', {
      row: 'session affinity',
      expected: { kind: 'answer', by: namesOf('sticky', facts), spread: 'one' },
      dial: { times: times.affinity },
    }),
    atClusterIp(asked, 'half-dead', {
      row: 'dead endpoint',
      expected: { kind: 'measure' },
      dial: { times: times.measured, evenIfRefused: true, timeoutMs: SILENCE_MS },
      protocols: ['TCP'],
    }),
    {
      row: 'API server',
      via: 'cluster IP',
      proxy: client.node,
      service: undefined,
      address: ofFamily(facts.apiServer?.clusterIPs ?? [], family),
      port: facts.apiServer?.port,
      expected: { kind: 'answer' },
      dial: { wait: 'connect' },
      protocols: ['TCP'],
    },
  ]
  const own = endpointName(endpointOn(ownNode(asked)))
  if (client.kind === 'pod' && plain.includes(own)) {
    const expected = { kind: 'answer', by: plain, spread: { includes: own } } as const
    targets.push(atClusterIp(asked, 'plain', { row: 'hairpin', expected, dial: { times: times.spread } }))
  }
  return targets
}

export function externalTargets({ facts, client, family }: Asked): Target[] {
  const common = { proxy: client.node, port: SERVICE_PORT } as const
  const plain = {
    ...common,
    service: 'plain',
    expected: { kind: 'answer', by: namesOf('plain', facts) },
    dial: { times: times.few },
  } as const
  const targets: Target[] = [
    { ...plain, row: 'load balancer IP', via: 'load balancer IP', address: loadBalancerIp('plain', family) },
  ]
  if (facts.hasExternalIPs)
    targets.push({ ...plain, row: 'external IP', via: 'external IP', address: externalIp(family) })
  // What a node itself is allowed depends on the mode.
  if (client.kind === 'pod') {
    const isAllowed = client.node === facts.nodes[0]!.name
    targets.push({
      ...common,
      row: 'source ranges',
      via: 'load balancer IP',
      service: 'ranges',
      address: loadBalancerIp('ranges', family),
      expected: isAllowed ? { kind: 'answer', by: namesOf('ranges', facts) } : { kind: 'nothing' },
    })
  }
  return targets
}

/** Its own node and the next one: with every pair, a large cluster would take too long. */
export function nodesDialled({ facts, client }: Asked): TestNode[] {
  const { nodes } = facts
  const own = nodes.findIndex(({ name }) => name === client.node)
  return nodes.length === 1 ? [nodes[own]!] : [nodes[own]!, nodes[(own + 1) % nodes.length]!]
}

export function nodePortTargets(asked: Asked, node: TestNode): Target[] {
  const { facts, client } = asked
  const targets = [
    atNodePort(asked, node, 'plain', {
      row: 'node port',
      expected: { kind: 'answer', by: namesOf('plain', facts) },
      dial: { times: times.few },
    }),
  ]
  // A pod may be masqueraded on its way to another node: only nodes, and what is outside, are clients from outside for sure.
  if (client.kind !== 'pod' && client.node !== node.name) {
    const by = localNames(facts, node.name)
    targets.push(
      atNodePort(
        asked,
        node,
        'external-local',
        by.length > 0
          ? { row: 'client address kept', expected: { kind: 'answer', by, keepsClient: true } }
          : { row: 'external policy Local', expected: { kind: 'nothing' } },
      ),
    )
  }
  return targets
}

export function policyTargets(asked: Asked): Target[] {
  const { facts, client, family } = asked
  const local = localNames(facts, client.node)
  const targets: Target[] = [
    atClusterIp(asked, 'internal-local', {
      row: 'internal policy Local',
      expected: local.length > 0 ? { kind: 'answer', by: local } : { kind: 'nothing' },
      dial: { times: local.length > 0 ? times.few : 1 },
    }),
  ]
  const external = { proxy: client.node, service: 'external-local' } as const
  // Where a proxy cannot tell pods from others, pods of a node without endpoints get no answer.
  if (client.kind === 'node' || local.length > 0) {
    targets.push({
      ...external,
      row: 'external policy Local',
      via: 'load balancer IP',
      address: loadBalancerIp('external-local', family),
      port: SERVICE_PORT,
      expected: { kind: 'answer', by: namesOf('external-local', facts) },
      dial: { times: times.few },
    })
  }
  if (client.kind === 'node') {
    targets.push({
      ...external,
      row: 'health check port',
      via: 'health check port',
      address: ofFamily(ownNode(asked).addresses, family),
      port: facts.services['external-local'].healthCheckNodePort,
      expected: { kind: 'answer', status: local.length > 0 ? 200 : 503 },
      dial: { wait: 'http' },
      protocols: ['TCP'],
    })
  }
  return targets
}

export function emptyTargets(asked: Asked): Target[] {
  const target = { row: 'no endpoints', expected: { kind: 'refusal' } } as const
  return [atClusterIp(asked, 'empty', target), atNodePort(asked, ownNode(asked), 'empty', target)]
}
