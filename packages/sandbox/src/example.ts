// What a sandbox starts with: the classic first example. examples/whoami.yaml says the same, for kubectl.

import { setTimeout as sleep } from 'node:timers/promises'
import type { Family } from '../../../src/lib/ip.ts'
import type { Service } from './apiserver/objects/service.ts'
import type { Registry } from './apiserver/registry/registry.ts'
import { deployments, services } from './apiserver/resources/table.ts'
import type { NodeNetwork } from './netns/cluster-network.ts'
import { canConnect } from './netns/sockets.ts'

export const whoamiDeployment = {
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'whoami', namespace: 'default' },
  spec: {
    replicas: 3,
    selector: { matchLabels: { app: 'whoami' } },
    template: {
      metadata: { labels: { app: 'whoami' } },
      spec: {
        containers: [
          {
            name: 'whoami',
            image: 'whoami',
            ports: [{ containerPort: 3000 }],
            env: [{ name: 'MESSAGE', value: 'viola' }],
          },
        ],
      },
    },
  },
} as const

export const whoamiService = {
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: 'whoami', namespace: 'default' },
  spec: {
    type: 'LoadBalancer',
    selector: { app: 'whoami' },
    ports: [{ port: 3000, nodePort: 30000 }],
  },
} as const

export interface ExampleService {
  readonly name: string
  readonly clusterIPs: readonly string[]
  readonly loadBalancerIPs: readonly string[]
  readonly port: number
  readonly nodePort: number | undefined
}

/** Creates the example. */
export function loadExample(registry: Registry, families: readonly Family[]): void {
  registry.create(deployments, whoamiDeployment)
  const stack = families.length > 1 ? { ipFamilyPolicy: 'PreferDualStack' } : {}
  registry.create(services, { ...whoamiService, spec: { ...whoamiService.spec, ...stack } })
}

/** Waits until the service answers from every node, with all pods ready. Nothing to wait for when it has been deleted. */
export async function waitForExample(
  registry: Registry,
  nodes: readonly NodeNetwork[],
  withinMs: number,
): Promise<readonly ExampleService[]> {
  const deadline = performance.now() + withinMs
  for (;;) {
    const service = registry.find(services, whoamiService.metadata)?.object
    const deployment = registry.find(deployments, whoamiDeployment.metadata)?.object
    if (service === undefined || deployment === undefined) return []
    const example = describe(service)
    const isUp = (deployment.status.readyReplicas ?? 0) >= (deployment.spec.replicas ?? 0)
    if (isUp && example.loadBalancerIPs.length > 0 && (await answersFrom(nodes, example.clusterIPs, example.port)))
      return [example]
    if (performance.now() > deadline) {
      throw new Error(`Cannot see the example answer within ${withinMs / 1000} s: see the logs beside the kubeconfig`)
    }
    await sleep(10)
  }
}

function describe({ metadata, spec, status }: Service): ExampleService {
  return {
    name: metadata.name,
    clusterIPs: spec.clusterIPs ?? [],
    loadBalancerIPs: (status.loadBalancer.ingress ?? []).flatMap(({ ip }) => ip ?? []),
    port: spec.ports?.[0]?.port ?? 0,
    nodePort: spec.ports?.[0]?.nodePort,
  }
}

/** Whether a service takes connections, from every node. */
export async function answersFrom(
  nodes: readonly NodeNetwork[],
  clusterIPs: readonly string[],
  port: number,
): Promise<boolean> {
  const attempts = nodes.flatMap(({ netns }) => clusterIPs.map((ip) => canConnect(netns, ip, port)))
  return (await Promise.all(attempts)).every(Boolean)
}
