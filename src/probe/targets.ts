// What is dialled, from the point of view of one client, family and protocol.

import { type Family, ipFamily } from '../lib/ip.ts'
import type { Client, Expected, Facts, Phase, Row, TestNode } from './checks.ts'
import { endpointName, endpointsOf, localEndpoints } from './endpoints.ts'
import { SERVICE_PORT, type ServiceName } from './objects.ts'
import type { Dial, Protocol } from './protocol.ts'

export interface Target {
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

export interface Asked {
  readonly facts: Facts
  readonly client: Client
  readonly family: Family
  readonly protocol: Protocol
  readonly phase: Phase
}

export const SILENCE_MS = 1000
/** How often something is dialled. */
export const times = { spread: 30, affinity: 8, few: 4, measured: 20 } as const

type Rest = Pick<Target, 'row' | 'expected'> & Partial<Target>

export function atClusterIp({ facts, client, family }: Asked, service: ServiceName, target: Rest): Target {
  const address = ofFamily(facts.services[service].clusterIPs, family)
  return { via: 'cluster IP', proxy: client.node, service, address, port: SERVICE_PORT, ...target }
}

export function atNodePort(asked: Asked, node: TestNode, service: ServiceName, target: Rest): Target {
  const address = ofFamily(node.addresses, asked.family)
  const port = asked.facts.services[service].nodePorts[asked.protocol]
  return { via: 'node port', proxy: node.name, service, address, port, ...target }
}

/** The node that a client is on. */
export function ownNode({ facts, client }: Asked): TestNode {
  return facts.nodes.find(({ name }) => name === client.node)!
}

export function ofFamily(addresses: readonly string[], family: Family): string | undefined {
  return addresses.find((address) => ipFamily(address) === family)
}

export function namesOf(service: ServiceName, { nodes }: Facts): string[] {
  return endpointsOf(service, nodes, 'start').map(endpointName)
}

export function namesAt({ facts, phase }: Asked): string[] {
  return endpointsOf('change', facts.nodes, phase).map(endpointName)
}

export function localNames({ nodes }: Facts, node: string): string[] {
  return localEndpoints(nodes)
    .filter((endpoint) => endpoint.node === node)
    .map(endpointName)
}
