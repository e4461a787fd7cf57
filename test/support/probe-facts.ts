// A cluster for the pure tests of `kube-proxy test`.

import type { Family } from '../../src/lib/ip.ts'
import type { AssignedService, Facts } from '../../src/probe/checks.ts'
import { type ServiceName, serviceNames } from '../../src/probe/objects.ts'

export function someFacts(count: number, families: readonly Family[] = [4, 6]): Facts {
  const ofFamilies = (four: string, six: string): string[] => families.map((family) => (family === 4 ? four : six))
  const services = Object.fromEntries(
    serviceNames.map((name, i): [ServiceName, AssignedService] => [
      name,
      {
        clusterIPs: ofFamilies(`10.96.0.${i + 10}`, `fd00:96::${i + 10}`),
        nodePorts: ['plain', 'external-local', 'ranges', 'empty', 'change'].includes(name)
          ? { TCP: 30_000 + 2 * i, UDP: 30_001 + 2 * i }
          : {},
        healthCheckNodePort: name === 'external-local' ? 31_000 : undefined,
      },
    ]),
  ) as Record<ServiceName, AssignedService>
  return {
    nodes: Array.from({ length: count }, (_, i) => ({
      name: `node-${i + 1}`,
      addresses: ofFamilies(`172.30.0.${i + 1}`, `fd00:30::${i + 1}`),
      pod: `pod-${i + 1}`,
      podIps: ofFamilies(`10.244.${i + 1}.2`, `fd00:244:${i + 1}::2`),
    })),
    families,
    services,
    apiServer: { clusterIPs: ofFamilies('10.96.0.1', 'fd00:96::1'), port: 443 },
    hasExternalIPs: true,
    outside: false,
    skip: new Set(),
  }
}
