// What a pod finds around it: host name, environment, ports.

import type { Container, EnvVar, Pod } from './apiserver/objects/pod.ts'
import type { RuntimePod } from './controllers/pod-runtime.ts'
import type { Identity } from './whoami/answer.ts'

const DEFAULT_MESSAGE = 'hello'

export function podIdentity({ pod, ips, nodeName }: RuntimePod): Identity {
  const env = podEnvironment(pod, ips)
  return {
    message: env['MESSAGE'] ?? DEFAULT_MESSAGE,
    hostname: pod.spec.hostname ?? pod.metadata.name,
    namespace: pod.metadata.namespace ?? '',
    node: nodeName,
    podIPs: ips,
    env,
  }
}

/** Every containerPort, of whatever protocol, once. */
export function podPorts({ spec }: Pod): number[] {
  return [...new Set(spec.containers.flatMap(({ ports = [] }) => ports.map(({ containerPort }) => containerPort)))]
}

/** The environment of its containers, the first one's where they differ. */
export function podEnvironment(pod: Pod, ips: readonly string[]): Record<string, string> {
  const env: Record<string, string> = { HOSTNAME: pod.spec.hostname ?? pod.metadata.name }
  for (const container of pod.spec.containers.toReversed())
    Object.assign(env, containerEnvironment(container, pod, ips))
  return env
}

function containerEnvironment({ env = [] }: Container, pod: Pod, ips: readonly string[]): Record<string, string> {
  const values: Record<string, string> = {}
  for (const variable of env) {
    const value = variable.value ?? fieldValue(variable, pod, ips) ?? ''
    // $(NAME) stands for a variable that came before.
    values[variable.name] = value.replace(/\$\(([^)]+)\)/g, (whole, name: string) => values[name] ?? whole)
  }
  return values
}

function fieldValue({ valueFrom }: EnvVar, pod: Pod, ips: readonly string[]): string | undefined {
  const path = valueFrom?.fieldRef?.fieldPath
  if (path === undefined) return undefined
  const [, list, key = ''] = /^metadata\.(labels|annotations)\['(.+)'\]$/.exec(path) ?? []
  if (list !== undefined) return pod.metadata[list as 'labels' | 'annotations']?.[key]
  switch (path) {
    case 'metadata.name':
      return pod.metadata.name
    case 'metadata.namespace':
      return pod.metadata.namespace
    case 'metadata.uid':
      return pod.metadata.uid
    case 'spec.nodeName':
      return pod.spec.nodeName
    case 'spec.serviceAccountName':
      return pod.spec.serviceAccountName
    case 'status.hostIP':
      return pod.status.hostIP
    case 'status.podIP':
      return ips[0]
    case 'status.podIPs':
      return ips.join(',')
    default:
      return undefined
  }
}
