// The cluster's own name server: the Service kube-dns with its usual address, and pods behind it like those of any other.

import { IpRange } from '../apiserver/allocation/ip-range.ts'
import { deployments, services } from '../apiserver/resources/table.ts'
import type { Registry } from '../apiserver/registry/registry.ts'

/** The image whose pods answer with names. */
export const dnsImage = 'sandbox/dns'

/** The tenth address of each range of services, as everywhere. */
const position = 10
const replicas = 2
const place = { name: 'kube-dns', namespace: 'kube-system' } as const
const labels = { 'k8s-app': 'kube-dns' } as const
export const DNS_PORT = 53

export function dnsAddresses(serviceRanges: readonly string[]): string[] {
  // Ranges count from their first address that can be given out, which is number one.
  return serviceRanges.map((range) => IpRange.parse(range).at(position - 1))
}

export function publishDns(registry: Registry, serviceRanges: readonly string[]): void {
  const clusterIPs = dnsAddresses(serviceRanges)
  const ports = [
    { name: 'dns', port: DNS_PORT, protocol: 'UDP' },
    { name: 'dns-tcp', port: DNS_PORT, protocol: 'TCP' },
  ]
  registry.create(services, {
    metadata: { ...place, labels: { ...labels, 'kubernetes.io/name': 'KubeDNS' } },
    spec: {
      selector: labels,
      clusterIP: clusterIPs[0]!,
      clusterIPs,
      ...(clusterIPs.length > 1 ? { ipFamilyPolicy: 'RequireDualStack' } : {}),
      ports,
    },
  })
  registry.create(deployments, {
    metadata: { ...place, labels },
    spec: {
      replicas,
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        spec: {
          containers: [
            {
              name: 'dns',
              image: dnsImage,
              ports: ports.map(({ name, protocol }) => ({ name, containerPort: DNS_PORT, protocol })),
            },
          ],
        },
      },
    },
  })
}
