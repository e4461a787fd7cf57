// What services lead to, as the map shows it: pods, and endpoints that no pod is known of.

import type { BackendInfo, PodInfo, ServiceInfo, Snapshot } from '../../protocol.ts'

export interface Target {
  /** `namespace/name` of a pod, or the address of an endpoint. */
  readonly id: string
  readonly node: string
  readonly label: string
  readonly address: string
  readonly pod: PodInfo | null
}

/** Where endpoints are whose node is not known: the API server, for one. */
export const ELSEWHERE = ''

export function serviceId({ namespace, name }: Pick<ServiceInfo, 'namespace' | 'name'>): string {
  return `${namespace}/${name}`
}

export function podId({ namespace, name }: Pick<PodInfo, 'namespace' | 'name'>): string {
  return `${namespace}/${name}`
}

/** The pods - or with `led` alone those that the services lead to - and what else those services lead to. */
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

/** Of the cluster's own: shown with the services that lead there. */
function isSystem({ namespace }: PodInfo): boolean {
  return namespace === 'kube-system'
}

export function targetOf({ pod, address }: Pick<BackendInfo, 'pod' | 'address'>): string {
  return pod ?? address
}

function backendsOf({ ports }: ServiceInfo): readonly BackendInfo[] {
  return ports.flatMap(({ backends }) => backends)
}
