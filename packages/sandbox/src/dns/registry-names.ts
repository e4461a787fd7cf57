import { endpointSlices, ipAddresses, namespaces, services } from '../apiserver/resources/table.ts'
import { serviceNameLabel } from '../controllers/slices-plan.ts'
import type { EndpointSlice } from '../apiserver/objects/endpoints.ts'
import type { Registry } from '../apiserver/registry/registry.ts'
import type { NamedCluster } from './cluster-names.ts'

export function namesOf(registry: Registry): NamedCluster {
  const service: NamedCluster['service'] = (namespace, name) => registry.find(services, { namespace, name })?.object
  const slicesWhere = (isMeant: (slice: EndpointSlice) => boolean): EndpointSlice[] =>
    registry.collection(endpointSlices).objects().filter(isMeant)
  return {
    hasNamespace: (name) => registry.find(namespaces, { name }) !== undefined,
    service,
    slices: (namespace, name) =>
      slicesWhere(
        ({ metadata, addressType }) =>
          metadata.namespace === namespace && metadata.labels?.[serviceNameLabel] === name && addressType !== 'FQDN',
      ),
    serviceAt(address) {
      const owner = registry.find(ipAddresses, { name: address })?.object.spec.parentRef
      return owner === undefined ? undefined : service(owner.namespace ?? '', owner.name ?? '')
    },
    slicesWith: (address) =>
      slicesWhere(({ endpoints }) => (endpoints ?? []).some(({ addresses }) => addresses.includes(address))),
  }
}
