// The pods behind a service, as endpoints of either kind see them. Pure.

import { ipFamily } from '../../../../src/lib/ip.ts'
import { isDeleting } from '../apiserver/objects/meta.ts'
import { isReady, isTerminal } from '../apiserver/objects/pod.ts'
import { fromMap, matchesLabels } from '../apiserver/selectors/label-selector.ts'
import type { IPFamily, Service, ServicePort } from '../apiserver/objects/service.ts'
import type { Pod } from '../apiserver/objects/pod.ts'

export interface TargetPort {
  readonly name: string
  readonly protocol: string
  readonly port: number
  readonly appProtocol: string | undefined
}

export interface Candidate {
  readonly pod: Pod
  readonly address: string
  readonly ready: boolean
  readonly serving: boolean
  readonly terminating: boolean
  readonly hostname: string | undefined
  readonly ports: readonly TargetPort[]
}

/** Pods that the service selects and that have an address of the family, by name. Those that ended for good are not. */
export function findCandidates(service: Service, pods: readonly Pod[], family: IPFamily): Candidate[] {
  const selector = fromMap(service.spec.selector ?? {})
  return pods
    .filter((pod) => pod.metadata.namespace === service.metadata.namespace)
    .filter((pod) => matchesLabels(selector, pod.metadata.labels) && !isTerminal(pod))
    .flatMap((pod) => {
      const address = addressOf(pod, family)
      return address === undefined ? [] : [candidate(service, pod, address)]
    })
    .sort((a, b) => (a.pod.metadata.name < b.pod.metadata.name ? -1 : 1))
}

export function addressOf({ status }: Pod, family: IPFamily): string | undefined {
  return status.podIPs?.find(({ ip }) => `IPv${ipFamily(ip)}` === family)?.ip
}

function candidate(service: Service, pod: Pod, address: string): Candidate {
  const terminating = isDeleting(pod)
  const serving = isReady(pod)
  const { hostname, subdomain } = pod.spec
  return {
    pod,
    address,
    serving,
    terminating,
    ready: service.spec.publishNotReadyAddresses === true || (serving && !terminating),
    hostname: hostname !== undefined && subdomain === service.metadata.name ? hostname : undefined,
    ports: (service.spec.ports ?? []).flatMap((port) => resolvePort(port, pod)),
  }
}

/** A named target is looked up in the pod; a pod that has no port of the name is behind the other ports only. */
function resolvePort(servicePort: ServicePort, pod: Pod): TargetPort[] {
  const { name = '', protocol = 'TCP', targetPort = servicePort.port, appProtocol } = servicePort
  const port = typeof targetPort === 'number' ? targetPort : namedPort(pod, targetPort, protocol)
  return port === undefined ? [] : [{ name, protocol, port, appProtocol }]
}

function namedPort(pod: Pod, name: string, protocol: string): number | undefined {
  for (const { ports = [] } of pod.spec.containers) {
    const found = ports.find((port) => port.name === name && (port.protocol ?? 'TCP') === protocol)
    if (found !== undefined) return found.containerPort
  }
  return undefined
}

export function portsKey(ports: readonly TargetPort[]): string {
  return JSON.stringify([...ports].sort((a, b) => (a.name < b.name ? -1 : 1)))
}

export function targetRef({ metadata }: Pod) {
  return { kind: 'Pod', namespace: metadata.namespace ?? '', name: metadata.name, uid: metadata.uid ?? '' }
}
