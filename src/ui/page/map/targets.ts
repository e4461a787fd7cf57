// The ends of services on the map: pods, and endpoints without a known pod.

import type { BackendInfo, PodInfo, ServiceInfo, Snapshot } from '../../protocol.ts'

export interface Target {
  /** `namespace/name` of a pod, or the address of an endpoint. */
  readonly id: string
  readonly node: string
  readonly label: string
  readonly address: string
  readonly pod: PodInfo | null
  /** Several pods, drawn as one. */
  readonly isGroup?: true
}

/** The node of endpoints without one, such as the API server. */
export const ELSEWHERE = ''

export function serviceId({ namespace, name }: Pick<ServiceInfo, 'namespace' | 'name'>): string {
  return `${namespace}/${name}`
}

export function podId({ namespace, name }: Pick<PodInfo, 'namespace' | 'name'>): string {
  return `${namespace}/${name}`
}

/** All pods, or with `led` only those behind the services; and other endpoints of the services. */
export function planTargets(
  { pods, nodes }: Snapshot,
  services: readonly ServiceInfo[],
  which: 'all' | 'led' = 'all',
): Target[] {
  const known = new Set(nodes.map(({ name }) => name))
  const ids = new Set<string>()
  const targets: Target[] = []
  const add = (target: Target) => {
    if (ids.has(target.id)) return
    ids.add(target.id)
    targets.push({ ...target, node: known.has(target.node) ? target.node : ELSEWHERE })
  }
  const led = new Set(services.flatMap(backendsOf).map(targetOf))
  for (const pod of pods) {
    const id = podId(pod)
    if (led.has(id) || (which === 'all' && !isSystem(pod))) {
      add({ id, node: pod.node, label: pod.name, address: pod.ips[0] ?? '', pod })
    }
  }
  for (const backend of services.flatMap(backendsOf)) {
    const { address, node } = backend
    add({ id: targetOf(backend), node, label: address, address, pod: null })
  }
  return targets
}

/** System pods are shown only with their services. */
function isSystem({ namespace }: PodInfo): boolean {
  return namespace === 'kube-system'
}

export function targetOf({ pod, address }: Pick<BackendInfo, 'pod' | 'address'>): string {
  return pod ?? address
}

function backendsOf({ ports }: ServiceInfo): readonly BackendInfo[] {
  return ports.flatMap(({ backends }) => backends)
}
