// The cloud's part of a load balancer: its address leads to nodes that have something to answer with. Any node will do,
// unless the service asks for nodes that have endpoints of their own (externalTrafficPolicy: Local). Load balancers of other
// classes are left to their own controllers, and so are the routes to them.

import type { EndpointSlice } from './apiserver/objects/endpoints.ts'
import type { Service } from './apiserver/objects/service.ts'
import type { Registry } from './apiserver/registry/registry.ts'
import { endpointSlices, services } from './apiserver/resources/table.ts'
import { hasOurLoadBalancer } from './controllers/load-balancers.ts'
import { serviceNameLabel } from './controllers/slices-plan.ts'
import type { ClusterNetwork } from './netns/cluster-network.ts'

/** Keeps the machine's routes to load balancers in step with services and their endpoints. */
export function startLoadBalancerRoutes(registry: Registry, network: ClusterNetwork): void {
  const current = new Map<string, string>()

  function follow(key: string): void {
    const service = registry.collection(services).get(key)?.object
    if (service === undefined) return
    const names = planNodes(
      service,
      slicesOf(key),
      network.nodes.map(({ plan }) => plan.name),
    )
    const nodes = network.nodes.filter(({ plan }) => names.includes(plan.name))
    for (const { ip } of service.status.loadBalancer.ingress ?? []) {
      if (ip === undefined || current.get(ip) === names.join()) continue
      current.set(ip, names.join())
      network.setLoadBalancer(ip, nodes)
    }
  }

  function slicesOf(key: string): EndpointSlice[] {
    return registry
      .collection(endpointSlices)
      .objects()
      .filter((slice) => ownerOf(slice) === key)
  }

  registry.collection(services).listen(({ key, after }) => {
    if (after !== undefined && hasOurLoadBalancer(after.object)) follow(key)
  })
  registry.collection(endpointSlices).listen(({ last }) => {
    const key = ownerOf(last.object)
    const service = registry.collection(services).get(key)?.object
    if (service !== undefined && hasOurLoadBalancer(service)) follow(key)
  })
  for (const { key, object } of registry.collection(services).list()) if (hasOurLoadBalancer(object)) follow(key)
}

/** The names of the nodes that a load balancer sends to. Pure. */
export function planNodes(service: Service, slices: readonly EndpointSlice[], nodes: readonly string[]): string[] {
  if (service.spec.externalTrafficPolicy !== 'Local') return nodes.slice(0, 1)
  const having = new Set(
    slices.flatMap(({ endpoints }) =>
      (endpoints ?? []).filter(({ conditions }) => conditions.ready !== false).map(({ nodeName }) => nodeName),
    ),
  )
  const local = nodes.filter((name) => having.has(name))
  return local.length > 0 ? local : nodes.slice(0, 1)
}

function ownerOf({ metadata }: EndpointSlice): string {
  return `${metadata.namespace}/${metadata.labels?.[serviceNameLabel]}`
}
