// All ports of one service at once.

import { describeFrontend } from './claims.ts'
import type { ClaimedFrontend, Claims } from './claims.ts'
import { countLocalReady, mergeEndpoints, portKey, portSources } from './endpoints.ts'
import { planServicePort, sameView } from './frontends.ts'
import type { ServiceInfo } from './service-ports.ts'
import { Summary } from './summary.ts'
import type { SliceRecord } from './slice-record.ts'
import type { HealthCheck, NodeView, NoLocalEndpoints, ServicePortName, ServicePortView } from './types.ts'

export interface ServicePlanInput {
  readonly info: ServiceInfo
  /** In order of their keys. */
  readonly slices: readonly SliceRecord[]
  readonly node: NodeView
  readonly claims: Claims
  /** The last plan's views by name. */
  readonly former: ReadonlyMap<ServicePortName, ServicePortView>
}

export interface ServicePlan {
  /** In order of the service's ports. A view that says the same as before is the same object. */
  readonly views: readonly ServicePortView[]
  /** What a port asks for and does not get, in words. */
  readonly losses: readonly { readonly name: ServicePortName; readonly messages: readonly string[] }[]
  readonly noLocalEndpoints: NoLocalEndpoints
  readonly healthCheck: HealthCheck | undefined
}

export function planService({ info, slices, node, claims, former }: ServicePlanInput): ServicePlan {
  const sources = portSources(slices)
  const noLocalEndpoints = { internal: 0, external: 0 }
  const losses: { name: ServicePortName; messages: string[] }[] = []
  const views = info.ports.map((port) => {
    const lost = new Summary()
    const owns = (frontend: ClaimedFrontend) => {
      if (claims.owner(frontend) === port) return true
      lost.add(
        () => `${describeFrontend(frontend)} belongs to ${claims.describeOwner(frontend)}; this port does not get it`,
      )
      return false
    }
    const previous = former.get(port.name)
    const endpoints = mergeEndpoints(sources.get(portKey(port.portName, port.protocol)) ?? [], node.nodeName)
    const { view, lacksLocal } = planServicePort({ port, endpoints, node, owns, previous })
    const messages: string[] = []
    lost.tell(messages)
    losses.push({ name: port.name, messages })
    if (lacksLocal.internal) noLocalEndpoints.internal++
    if (lacksLocal.external) noLocalEndpoints.external++
    return previous !== undefined && sameView(previous, view) ? previous : view
  })
  return {
    views,
    losses,
    noLocalEndpoints,
    healthCheck: healthCheckOf(info, () => countLocalReady(sources.values(), node.nodeName)),
  }
}

function healthCheckOf(info: ServiceInfo, countLocal: () => number): HealthCheck | undefined {
  const { namespace, name, healthCheckNodePort: port } = info
  return port === 0 ? undefined : { namespace, service: name, port, localEndpoints: countLocal() }
}
