// What every cluster has from its first moment on.

import { defaultCidrName } from './allocation/cluster-ips.ts'
import { formatTime } from './time.ts'
import { namespaces, serviceAccounts, serviceCidrs } from './resources/table.ts'
import type { Registry } from './registry/registry.ts'

export const systemNamespaces = ['default', 'kube-node-lease', 'kube-public', 'kube-system'] as const

export interface BootstrapOptions {
  /** None: the cluster has no ServiceCIDR, and gives out no cluster IPs. */
  readonly serviceCidrs: readonly string[]
}

export function bootstrap(registry: Registry, options: BootstrapOptions): void {
  for (const name of systemNamespaces) {
    registry.create(namespaces, { metadata: { name } })
    registry.create(serviceAccounts, { metadata: { namespace: name, name: 'default' } })
  }
  if (options.serviceCidrs.length === 0) return
  const place = { name: defaultCidrName }
  registry.create(serviceCidrs, { metadata: place, spec: { cidrs: [...options.serviceCidrs] } })
  const ready = {
    type: 'Ready',
    status: 'True',
    reason: '',
    message: 'Kubernetes default Service CIDR is ready',
    lastTransitionTime: formatTime(registry.now()),
  }
  registry.modify(serviceCidrs, place, ({ status }) => (status.conditions = [ready]), 'status')
}
