// Objects that describe the sandbox itself: its nodes, and the service under which the API server is found.

import { endpoints, endpointSlices, leases, nodes, services } from '../apiserver/resources/table.ts'
import { formatMicroTime, formatTime } from '../apiserver/time.ts'
import { hostnameLabel, zoneLabel } from '../apiserver/objects/node.ts'
import { IpRange } from '../apiserver/allocation/ip-range.ts'
import { ipFamily } from '../../../../src/lib/ip.ts'
import { managedByLabel, serviceNameLabel } from './slices-plan.ts'
import type { Registry } from '../apiserver/registry/registry.ts'

export interface NodeSpec {
  readonly name: string
  /** One per family, the cluster's first family first. */
  readonly podCidrs: readonly string[]
  readonly addresses: readonly string[]
  readonly zone?: string
  readonly kernelVersion?: string
}

/** Makes a node, which is ready. */
export function registerNode(registry: Registry, node: NodeSpec, version: string): void {
  const labels = {
    'kubernetes.io/os': 'linux',
    'kubernetes.io/arch': process.arch === 'x64' ? 'amd64' : process.arch,
    [hostnameLabel]: node.name,
    'topology.kubernetes.io/region': 'sandbox',
    ...(node.zone === undefined ? {} : { [zoneLabel]: node.zone }),
  }
  registry.create(nodes, { metadata: { name: node.name, labels }, spec: { podCIDRs: [...node.podCidrs] } })
  const renewTime = formatMicroTime(registry.now())
  registry.create(leases, {
    metadata: { namespace: 'kube-node-lease', name: node.name },
    spec: { holderIdentity: node.name, leaseDurationSeconds: 40, renewTime },
  })
  const now = formatTime(registry.now())
  const ready = {
    type: 'Ready',
    status: 'True',
    reason: 'SandboxReady',
    message: 'the node is a network namespace, and it is there',
    lastHeartbeatTime: now,
    lastTransitionTime: now,
  }
  // One address of each range is the node's own; every other one is for a pod.
  const podLimit = Math.min(...node.podCidrs.map((cidr) => IpRange.parse(cidr).size - 1))
  const amounts = { cpu: '2', memory: '4Gi', pods: String(podLimit) }
  registry.modify(
    nodes,
    node,
    ({ status }) =>
      Object.assign(status, {
        conditions: [ready],
        addresses: [
          ...node.addresses.map((address) => ({ type: 'InternalIP', address })),
          { type: 'Hostname', address: node.name },
        ],
        capacity: amounts,
        allocatable: amounts,
        nodeInfo: {
          ...status.nodeInfo,
          kubeletVersion: version,
          kernelVersion: node.kernelVersion ?? '',
          osImage: 'kube-proxy sandbox',
          containerRuntimeVersion: 'sandbox://netns',
          operatingSystem: 'linux',
          architecture: labels['kubernetes.io/arch'],
        },
      }),
    'status',
  )
}

export interface ApiServerAddress {
  readonly ips: readonly string[]
  readonly port: number
}

/**
 * The service `kubernetes` in the namespace `default`, at the first address of the service range. It comes back when
 * it is deleted, as by `kubectl delete all --all`.
 */
export function publishApiServer(registry: Registry, serviceCidr: string, address: ApiServerAddress): void {
  publish(registry, serviceCidr, address)
  registry.collection(services).listen(({ key, after }) => {
    // Not in the middle of the deletion.
    if (key !== 'default/kubernetes' || after !== undefined) return
    setImmediate(() => publish(registry, serviceCidr, address))
  })
}

function publish(registry: Registry, serviceCidr: string, { ips, port }: ApiServerAddress): void {
  const place = { namespace: 'default', name: 'kubernetes' }
  registry.ensure(services, place, {
    metadata: { ...place, labels: { component: 'apiserver', provider: 'kubernetes' } },
    spec: {
      clusterIP: IpRange.parse(serviceCidr).at(0),
      ports: [{ name: 'https', port: 443, protocol: 'TCP', targetPort: port }],
    },
  })
  const family = serviceCidr.includes(':') ? 6 : 4
  const own = ips.filter((ip) => ipFamily(ip) === family)
  const ports = [{ name: 'https', port, protocol: 'TCP' }]
  const skip = { 'endpointslice.kubernetes.io/skip-mirror': 'true' }
  const subsets = [{ addresses: own.map((ip) => ({ ip })), ports }]
  registry.deleteIfThere(endpoints, place)
  registry.create(endpoints, { metadata: { ...place, labels: skip }, subsets })
  registry.deleteIfThere(endpointSlices, place)
  registry.create(endpointSlices, {
    metadata: { ...place, labels: { [serviceNameLabel]: 'kubernetes', [managedByLabel]: 'kube-apiserver' } },
    addressType: `IPv${family}`,
    endpoints: own.map((ip) => ({ addresses: [ip], conditions: { ready: true } })),
    ports,
  })
}
