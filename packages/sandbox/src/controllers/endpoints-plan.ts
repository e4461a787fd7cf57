// The Endpoints object of a service. Pure.

import { isHeadless } from '../apiserver/objects/service.ts'
import { findCandidates, portsKey, targetRef } from './endpoint-candidates.ts'
import type { Candidate } from './endpoint-candidates.ts'
import type { EndpointAddress, EndpointSubset } from '../apiserver/objects/endpoints.ts'
import type { Labels } from '../apiserver/objects/meta.ts'
import type { Pod } from '../apiserver/objects/pod.ts'
import type { Service } from '../apiserver/objects/service.ts'

export const headlessLabel = 'service.kubernetes.io/headless'
const managedByLabel = 'endpoints.kubernetes.io/managed-by'

export interface EndpointsPlan {
  readonly labels: Labels
  readonly subsets: EndpointSubset[]
}

/** Its addresses are of the service's first family only: the object is older than the second. */
export function planEndpoints(service: Service, pods: readonly Pod[]): EndpointsPlan {
  const family = service.spec.ipFamilies?.[0] ?? 'IPv4'
  const shown = findCandidates(service, pods, family).filter(
    ({ terminating }) => !terminating || service.spec.publishNotReadyAddresses === true,
  )
  const groups = new Map<string, Candidate[]>()
  for (const candidate of shown) {
    // A headless service without ports still has addresses.
    if (candidate.ports.length === 0 && !(isHeadless(service) && (service.spec.ports ?? []).length === 0)) continue
    const key = portsKey(candidate.ports)
    groups.set(key, [...(groups.get(key) ?? []), candidate])
  }
  return {
    labels: endpointsLabels(service),
    subsets: [...groups].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, members]) => subsetOf(members)),
  }
}

function endpointsLabels(service: Service): Labels {
  const labels: Labels = { ...service.metadata.labels, [managedByLabel]: 'endpoint-controller' }
  if (isHeadless(service)) labels[headlessLabel] = ''
  return labels
}

function subsetOf(members: readonly Candidate[]): EndpointSubset {
  const byAddress = [...members].sort((a, b) => (a.address < b.address ? -1 : 1))
  const addresses = byAddress.filter(({ ready }) => ready).map(addressOf)
  const notReadyAddresses = byAddress.filter(({ ready }) => !ready).map(addressOf)
  const ports = (members[0]?.ports ?? []).map(({ name, port, protocol, appProtocol }) => ({
    ...(name === '' ? {} : { name }),
    port,
    protocol,
    ...(appProtocol === undefined ? {} : { appProtocol }),
  }))
  return {
    ...(addresses.length === 0 ? {} : { addresses }),
    ...(notReadyAddresses.length === 0 ? {} : { notReadyAddresses }),
    ports,
  }
}

function addressOf({ address, hostname, pod }: Candidate): EndpointAddress {
  return {
    ip: address,
    ...(hostname === undefined ? {} : { hostname }),
    ...(pod.spec.nodeName === undefined ? {} : { nodeName: pod.spec.nodeName }),
    targetRef: targetRef(pod),
  }
}
