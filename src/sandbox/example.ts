// What a sandbox starts with: the classic first example. examples/whoami.yaml says the same, for kubectl.

import { setTimeout as sleep } from 'node:timers/promises'
import type { Family } from '../lib/ip.ts'
import type { Service } from './apiserver/objects/service.ts'
import type { Registry } from './apiserver/registry/registry.ts'
import { replicationControllers, services } from './apiserver/resources/table.ts'
import type { NodeNetwork } from './netns/cluster-network.ts'
import { canConnect } from './netns/sockets.ts'

export const whoamiController = {
  apiVersion: 'v1',
  kind: 'ReplicationController',
  metadata: { name: 'whoami', namespace: 'default' },
  spec: {
    replicas: 3,
    selector: { app: 'whoami' },
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
  const { name, namespace } = whoamiController.metadata
  if (registry.find(replicationControllers, { namespace, name }) === undefined) {
    registry.create(replicationControllers, whoamiController)
  }
  const stack = families.length > 1 ? { ipFamilyPolicy: 'PreferDualStack' } : {}
  if (registry.find(services, whoamiService.metadata) === undefined) {
    registry.create(services, { ...whoamiService, spec: { ...whoamiService.spec, ...stack } })
  }
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
    const controller = registry.find(replicationControllers, whoamiController.metadata)?.object
    if (service === undefined || controller === undefined) return []
    const example = describe(service)
    const isUp = (controller.status.readyReplicas ?? 0) >= (controller.spec.replicas ?? 0)
    if (isUp && example.loadBalancerIPs.length > 0 && (await answersFrom(nodes, example))) return [example]
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

async function answersFrom(nodes: readonly NodeNetwork[], { clusterIPs, port }: ExampleService): Promise<boolean> {
  const attempts = nodes.flatMap(({ netns }) => clusterIPs.map((ip) => canConnect(netns, ip, port)))
  return (await Promise.all(attempts)).every(Boolean)
}
