// The services that the map shows, by a search text and a namespace.

import type { ServiceInfo, Snapshot } from '../../protocol.ts'
import { serviceId } from './targets.ts'

export interface MapFilter {
  readonly words: string
  /** '' is all. */
  readonly namespace: string
  /** Whether system services are shown. */
  readonly system: boolean
}

/** In the order of namespaces and names, system services last. */
export function filterServices({ services, pods }: Snapshot, filter: MapFilter): ServiceInfo[] {
  const { namespace, system } = filter
  const words = filter.words.trim().toLowerCase().split(/\s+/).filter(Boolean)
  const names = new Map(pods.map((pod) => [`${pod.namespace}/${pod.name}`, pod.name]))
  return services
    .filter((service) => system || !service.system)
    .filter((service) => namespace === '' || service.namespace === namespace)
    .filter((service) => {
      if (words.length === 0) return true
      const text = textOf(service, names)
      return words.every((word) => text.includes(word))
    })
    .sort((a, b) => Number(a.system) - Number(b.system) || (serviceId(a) < serviceId(b) ? -1 : 1))
}

/** The searchable text: names, addresses, ports, pods. */
function textOf(service: ServiceInfo, pods: ReadonlyMap<string, string>): string {
  const { clusterIPs, loadBalancerIPs, externalIPs, ports } = service
  const parts = [
    serviceId(service),
    ...clusterIPs,
    ...loadBalancerIPs,
    ...externalIPs,
    ...ports.flatMap(({ port, nodePort, name, backends }) => [
      String(port),
      String(nodePort ?? ''),
      name,
      ...backends.flatMap(({ address, pod }) => [address, pods.get(pod ?? '') ?? '']),
    ]),
  ]
  return parts.join(' ').toLowerCase()
}
