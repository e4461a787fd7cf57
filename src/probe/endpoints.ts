// Which probes are the endpoints of which Service, and when.

import type { Phase, TestNode } from './checks.ts'
import { type Endpoint, probePorts, type ServiceName } from './objects.ts'

export function endpointName({ pod, port }: Pick<Endpoint, 'pod' | 'port'>): string {
  return `${pod}:${port}`
}

export function endpointOn({ name, pod, podIps }: TestNode, port: number = probePorts.first): Endpoint {
  return { pod, node: name, ips: podIps, port }
}

/** Up to three; a cluster of one node has two ports of one pod. */
function fewEndpoints(nodes: readonly TestNode[]): Endpoint[] {
  const [first] = nodes
  if (nodes.length === 1) return [endpointOn(first!), endpointOn(first!, probePorts.second)]
  return nodes.slice(0, 3).map((node) => endpointOn(node))
}

/** All nodes but the last have one, so that one has none. */
export function localEndpoints(nodes: readonly TestNode[]): Endpoint[] {
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
