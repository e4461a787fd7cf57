// Every connection that the test makes, and what has to come of it. Pure.

import { type Family, ipFamily } from '../lib/ip.ts'
import { type Endpoint, externalIp, loadBalancerIp, probePorts, type ServiceName, SERVICE_PORT } from './objects.ts'
import type { Dial, Protocol } from './protocol.ts'

export interface TestNode {
  readonly name: string
  /** Internal addresses, the first of each family. */
  readonly addresses: readonly string[]
  /** Its probe pod. */
  readonly pod: string
  readonly podIps: readonly string[]
}

export interface AssignedService {
  readonly clusterIPs: readonly string[]
  readonly nodePorts: Readonly<Partial<Record<Protocol, number>>>
  readonly healthCheckNodePort: number | undefined
}

export interface Facts {
  readonly nodes: readonly TestNode[]
  readonly families: readonly Family[]
  readonly services: Readonly<Record<ServiceName, AssignedService>>
  /** The Service default/kubernetes. */
  readonly apiServer: { readonly clusterIPs: readonly string[]; readonly port: number } | undefined
  readonly hasExternalIPs: boolean
  /** Whether the machine that runs the command dials, too. */
  readonly outside: boolean
  readonly skip: ReadonlySet<Row>
}

/** The steps of a test, each with endpoints of its own for the Service `change`. */
export const phases = ['start', 'replaced', 'terminating', 'gone', 'back'] as const
export type Phase = (typeof phases)[number]

/** The rows of the table. */
export const rows = [
  'pod network',
  'API server',
  'cluster IP',
  'hairpin',
  'external IP',
  'load balancer IP',
  'node port',
  'session affinity',
  'source ranges',
  'internal policy Local',
  'external policy Local',
  'client address kept',
  'health check port',
  'no endpoints',
  'dead endpoint',
  'endpoint replaced',
  'open UDP socket',
  'terminating endpoint',
  'last endpoint gone',
  'endpoint back',
] as const
export type Row = (typeof rows)[number]

export interface Client {
  readonly kind: 'pod' | 'node' | 'outside'
  /** Where it runs; empty for outside. */
  readonly node: string
}

export type Expected =
  | {
      readonly kind: 'answer'
      /** Endpoints that may answer. Absent: whoever listens. */
      readonly by?: readonly string[]
      /** `each`: every one of them has to. `one`: always the same. An endpoint: that one among others. */
      readonly spread?: 'each' | 'one' | { readonly includes: string }
      readonly keepsClient?: boolean
      readonly status?: number
    }
  | { readonly kind: 'refusal' }
  /** Refused or dropped: no endpoint may answer. */
  | { readonly kind: 'nothing' }
  /** Some answers, with the number of refused connections. */
  | { readonly kind: 'measure' }

export interface Check {
  /** The same in each run on the same cluster, whatever addresses are given out. */
  readonly id: string
  readonly row: Row
  /** What is dialled: `cluster IP`, `node port`... */
  readonly via: string
  readonly phase: Phase
  /** The node whose proxy decides. */
  readonly proxy: string
  /** The node of the pod, where a pod is dialled. */
  readonly to: string | undefined
  readonly client: Client
  readonly family: Family
  readonly protocol: Protocol
  readonly service: ServiceName | undefined
  readonly dial: Dial
  readonly expected: Expected
}

const ANSWER_WITHIN_MS = 2500
const SILENCE_MS = 1000
const times = { spread: 30, affinity: 8, few: 4, measured: 20 } as const

export function endpointName({ pod, port }: Pick<Endpoint, 'pod' | 'port'>): string {
  return `${pod}:${port}`
}

function endpointOn({ name, pod, podIps }: TestNode, port: number = probePorts.first): Endpoint {
  return { pod, node: name, ips: podIps, port }
}

/** Up to three; a cluster of one node has two ports of one pod. */
function fewEndpoints(nodes: readonly TestNode[]): Endpoint[] {
  const [first] = nodes
  if (nodes.length === 1) return [endpointOn(first!), endpointOn(first!, probePorts.second)]
  return nodes.slice(0, 3).map((node) => endpointOn(node))
}

/** All nodes but the last have one, so that one has none. */
function localEndpoints(nodes: readonly TestNode[]): Endpoint[] {
  return (nodes.length === 1 ? nodes : nodes.slice(0, -1)).map((node) => endpointOn(node))
}

/** The endpoints of a service in a phase. */
export function endpointsOf(service: ServiceName, nodes: readonly TestNode[], phase: Phase): Endpoint[] {
  const few = fewEndpoints(nodes)
  switch (service) {
    case 'empty':
      return []
    case 'internal-local':
    case 'external-local':
      return localEndpoints(nodes)
    case 'half-dead':
      return [few[0]!, endpointOn(nodes[0]!, probePorts.closed)]
    case 'change':
      return endpointsAtPhase(few, phase)
    default:
      return few
  }
}

function endpointsAtPhase([one, other]: readonly Endpoint[], phase: Phase): Endpoint[] {
  switch (phase) {
    case 'start':
    case 'back':
      return [one!]
    case 'replaced':
      return [other!]
    case 'terminating':
      return [{ ...other!, state: 'terminating' }]
    case 'gone':
      return []
  }
}

/** The sources that may use the Service with source ranges: one pod. */
export function allowedSources(nodes: readonly TestNode[]): readonly string[] {
  return nodes[0]!.podIps
}

interface Target {
  readonly row: Row
  /** What is dialled. */
  readonly via: string
  readonly proxy: string
  readonly to?: string
  readonly service: ServiceName | undefined
  readonly address: string | undefined
  readonly port: number | undefined
  readonly expected: Expected
  readonly dial?: Partial<Dial>
  readonly protocols?: readonly Protocol[]
}

/** Checks of the phase, for each client, family and protocol. */
export function planChecks(facts: Facts, phase: Phase): Check[] {
  const clients: Client[] = facts.nodes.flatMap(({ name }) => [
    { kind: 'pod', node: name },
    { kind: 'node', node: name },
  ])
  if (facts.outside) clients.push({ kind: 'outside', node: '' })
  return facts.families.flatMap((family) =>
    clients.flatMap((client) =>
      (['TCP', 'UDP'] as const).flatMap((protocol) =>
        targetsOf({ facts, client, family, protocol, phase }).flatMap((target) => {
          const { row, via, proxy, to, service, address, port, expected, dial, protocols } = target
          if (address === undefined || port === undefined || facts.skip.has(row)) return []
          if (protocols !== undefined && !protocols.includes(protocol)) return []
          const from = client.kind === 'outside' ? 'outside' : `${client.kind} on ${client.node}`
          const what = row === via ? row : `${row}, ${via}`
          const id = `${phase}: ${what}, ${protocol}, IPv${family}, from ${from}, at ${proxy}`
          return [
            {
              id,
              row,
              via,
              phase,
              proxy,
              to,
              client,
              family,
              protocol,
              service,
              expected,
              dial: { address, port, protocol, times: 1, wait: 'greeting', timeoutMs: timeoutOf(expected), ...dial },
            } satisfies Check,
          ]
        }),
      ),
    ),
  )
}

function timeoutOf({ kind }: Expected): number {
  return kind === 'nothing' ? SILENCE_MS : ANSWER_WITHIN_MS
}

interface Asked {
  readonly facts: Facts
  readonly client: Client
  readonly family: Family
  readonly protocol: Protocol
  readonly phase: Phase
}

function targetsOf(asked: Asked): Target[] {
  const { phase, client } = asked
  if (phase !== 'start') return client.kind === 'outside' ? [] : changeTargets(asked)
  if (client.kind === 'outside') return asked.facts.nodes.flatMap((node) => nodePortTargets(asked, node))
  return [
    ...networkTargets(asked),
    ...clusterTargets(asked),
    ...externalTargets(asked),
    ...nodesDialled(asked).flatMap((node) => nodePortTargets(asked, node)),
    ...policyTargets(asked),
    ...emptyTargets(asked),
    ...keptSocketTargets(asked),
  ]
}

/** Without any Service: what fails here is not the proxy's fault. */
function networkTargets({ facts, client, family }: Asked): Target[] {
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

function clusterTargets(asked: Asked): Target[] {
  const { facts, client, family } = asked
  const plain = namesOf('plain', facts)
  const own = ownEndpoint(facts, client)
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
  if (client.kind === 'pod' && own !== undefined && plain.includes(own)) {
    const expected = { kind: 'answer', by: plain, spread: { includes: own } } as const
    targets.push(atClusterIp(asked, 'plain', { row: 'hairpin', expected, dial: { times: times.spread } }))
  }
  return targets
}

function externalTargets({ facts, client, family }: Asked): Target[] {
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
function nodesDialled({ facts, client }: Asked): TestNode[] {
  const { nodes } = facts
  const own = nodes.findIndex(({ name }) => name === client.node)
  return nodes.length === 1 ? [nodes[own]!] : [nodes[own]!, nodes[(own + 1) % nodes.length]!]
}

function nodePortTargets({ facts, client, family, protocol }: Asked, node: TestNode): Target[] {
  const at = (service: ServiceName) => ({
    via: 'node port',
    proxy: node.name,
    service,
    address: ofFamily(node.addresses, family),
    port: facts.services[service].nodePorts[protocol],
  })
  const targets: Target[] = [
    {
      ...at('plain'),
      row: 'node port',
      expected: { kind: 'answer', by: namesOf('plain', facts) },
      dial: { times: times.few },
    },
  ]
  // A pod may be masqueraded on its way to another node: only nodes, and what is outside, are clients from outside for sure.
  if (client.kind !== 'pod' && client.node !== node.name) {
    const local = localNames(facts, node.name)
    targets.push(
      local.length > 0
        ? {
            ...at('external-local'),
            row: 'client address kept',
            expected: { kind: 'answer', by: local, keepsClient: true },
          }
        : { ...at('external-local'), row: 'external policy Local', expected: { kind: 'nothing' } },
    )
  }
  return targets
}

function policyTargets(asked: Asked): Target[] {
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
    const node = facts.nodes.find(({ name }) => name === client.node)!
    targets.push({
      ...external,
      row: 'health check port',
      via: 'health check port',
      address: ofFamily(node.addresses, family),
      port: facts.services['external-local'].healthCheckNodePort,
      expected: { kind: 'answer', status: local.length > 0 ? 200 : 503 },
      dial: { wait: 'http' },
      protocols: ['TCP'],
    })
  }
  return targets
}

function emptyTargets(asked: Asked): Target[] {
  const { facts, client, family, protocol } = asked
  const node = facts.nodes.find(({ name }) => name === client.node)!
  const expected = { kind: 'refusal' } as const
  return [
    atClusterIp(asked, 'empty', { row: 'no endpoints', expected }),
    {
      row: 'no endpoints',
      via: 'node port',
      proxy: client.node,
      service: 'empty',
      address: ofFamily(node.addresses, family),
      port: facts.services.empty.nodePorts[protocol],
      expected,
    },
  ]
}

/** A socket that goes on sending while its endpoint is replaced. */
function keptSocketTargets(asked: Asked): Target[] {
  const by = namesAt(asked)
  const dial = { socket: `change-IPv${asked.family}` }
  const expected = { kind: 'answer', by } as const
  return [atClusterIp(asked, 'change', { row: 'open UDP socket', expected, dial, protocols: ['UDP'] })]
}

const rowOfPhase: Readonly<Record<Exclude<Phase, 'start'>, Row>> = {
  replaced: 'endpoint replaced',
  terminating: 'terminating endpoint',
  gone: 'last endpoint gone',
  back: 'endpoint back',
}

function changeTargets(asked: Asked): Target[] {
  const { facts, client, family, protocol, phase } = asked
  const row = rowOfPhase[phase as Exclude<Phase, 'start'>]
  const by = namesAt(asked)
  const expected: Expected = by.length === 0 ? { kind: 'refusal' } : { kind: 'answer', by }
  const dial = by.length === 0 ? {} : { times: times.few }
  const node = facts.nodes.find(({ name }) => name === client.node)!
  return [
    atClusterIp(asked, 'change', { row, expected, dial }),
    {
      row,
      via: 'node port',
      proxy: client.node,
      service: 'change',
      address: ofFamily(node.addresses, family),
      port: facts.services.change.nodePorts[protocol],
      expected,
      dial,
    },
    ...(phase === 'replaced' ? keptSocketTargets(asked) : []),
  ]
}

function atClusterIp(
  { facts, client, family }: Asked,
  service: ServiceName,
  target: Pick<Target, 'row' | 'expected'> & Partial<Target>,
): Target {
  const address = ofFamily(facts.services[service].clusterIPs, family)
  return { via: 'cluster IP', proxy: client.node, service, address, port: SERVICE_PORT, ...target }
}

function ofFamily(addresses: readonly string[], family: Family): string | undefined {
  return addresses.find((address) => ipFamily(address) === family)
}

function namesOf(service: ServiceName, { nodes }: Facts): string[] {
  return endpointsOf(service, nodes, 'start').map(endpointName)
}

function namesAt({ facts, phase }: Asked): string[] {
  return endpointsOf('change', facts.nodes, phase).map(endpointName)
}

function localNames({ nodes }: Facts, node: string): string[] {
  return localEndpoints(nodes)
    .filter((endpoint) => endpoint.node === node)
    .map(endpointName)
}

function ownEndpoint({ nodes }: Facts, client: Client): string | undefined {
  const node = nodes.find(({ name }) => name === client.node)
  return node === undefined ? undefined : endpointName(endpointOn(node))
}
