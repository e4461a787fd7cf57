// All resources that the API server offers, in the order in which discovery lists them.

import { clusterRoleBindings, clusterRoles } from './cluster-role.ts'
import { configMaps } from './config-map.ts'
import { daemonSets } from './daemon-set.ts'
import { endpoints } from './endpoints.ts'
import { endpointSlices } from './endpoint-slice.ts'
import { events, eventsV1 } from './event.ts'
import { ipAddresses } from './ip-address.ts'
import { leases } from './lease.ts'
import { namespaces } from './namespace.ts'
import { nodes } from './node.ts'
import { pods } from './pod.ts'
import { reviews } from './reviews.ts'
import { secrets } from './secret.ts'
import { serviceAccounts } from './service-account.ts'
import { serviceCidrs } from './service-cidr.ts'
import { services } from './service.ts'
import { deployments } from './deployment.ts'
import { replicaSets } from './replica-set.ts'
import { replicationControllers } from './replication-controller.ts'
import type { Resource } from './resource.ts'

export const resources: readonly Resource[] = [
  configMaps,
  endpoints,
  events,
  namespaces,
  nodes,
  pods,
  replicationControllers,
  secrets,
  serviceAccounts,
  services,
  daemonSets,
  deployments,
  replicaSets,
  eventsV1,
  ipAddresses,
  serviceCidrs,
  endpointSlices,
  leases,
  clusterRoleBindings,
  clusterRoles,
  ...reviews,
]

const byPath = new Map(
  resources.map((resource) => [pathKey(resource.group, resource.version, resource.plural), resource]),
)

export function resourceAt(group: string, version: string, plural: string): Resource | undefined {
  return byPath.get(pathKey(group, version, plural))
}

function pathKey(group: string, version: string, plural: string): string {
  return `${group}/${version}/${plural}`
}

export {
  configMaps,
  deployments,
  endpoints,
  endpointSlices,
  events,
  eventsV1,
  ipAddresses,
  leases,
  namespaces,
  nodes,
  pods,
  replicaSets,
  replicationControllers,
  secrets,
  serviceAccounts,
  serviceCidrs,
  services,
}
