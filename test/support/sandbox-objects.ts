// Objects of the sandbox's API, decoded and defaulted as its registry keeps them, with as little as possible to say in a
// test; and a cluster of them without any network.

import { bootstrap } from '../../packages/sandbox/src/apiserver/bootstrap.ts'
import { createRegistry } from '../../packages/sandbox/src/apiserver/start-api-server.ts'
import { decodeObject } from '../../packages/sandbox/src/apiserver/schema/decode.ts'
import { ManualClock } from './manual-clock.ts'
import { messageNamed } from '../../packages/sandbox/src/apiserver/schema/schema.ts'
import { apiVersionOf } from '../../packages/sandbox/src/apiserver/resources/resource.ts'
import {
  deployments,
  nodes,
  pods,
  replicaSets,
  services,
} from '../../packages/sandbox/src/apiserver/resources/table.ts'
import { registerNode } from '../../packages/sandbox/src/controllers/cluster-objects.ts'
import { startControllers } from '../../packages/sandbox/src/controllers/start-controllers.ts'
import { Store } from '../../packages/sandbox/src/apiserver/store/store.ts'
import type { ApiObject } from '../../packages/sandbox/src/apiserver/objects/meta.ts'
import type { ControllerOptions, Controllers } from '../../packages/sandbox/src/controllers/start-controllers.ts'
import type { Deployment, ReplicaSet } from '../../packages/sandbox/src/apiserver/objects/workloads.ts'
import type { JsonObject } from '../../packages/sandbox/src/apiserver/json.ts'
import type { Node } from '../../packages/sandbox/src/apiserver/objects/node.ts'
import type { Pod } from '../../packages/sandbox/src/apiserver/objects/pod.ts'
import type { Registry } from '../../packages/sandbox/src/apiserver/registry/registry.ts'
import type { Resource } from '../../packages/sandbox/src/apiserver/resources/resource.ts'
import type { Service } from '../../packages/sandbox/src/apiserver/objects/service.ts'

/** The moment at which the clocks of these tests start. */
export const startMs = Date.UTC(2026, 0, 1)

function objectOf<T extends ApiObject>(resource: Resource<T>, source: object): T {
  const json = { kind: resource.kind, apiVersion: apiVersionOf(resource), ...source } as JsonObject
  const object = decodeObject(messageNamed(resource.message), json).value as unknown as T
  resource.setDefaults(object)
  return object
}

export interface PodOptions {
  readonly name?: string
  readonly labels?: Record<string, string>
  readonly node?: string
  readonly ips?: readonly string[]
  readonly ready?: boolean
  readonly phase?: string
  readonly deleting?: boolean
  readonly owner?: { readonly metadata: { readonly uid?: string; readonly name: string }; readonly kind: string }
  readonly created?: string
  readonly readySince?: string
  readonly spec?: object
}

/** default/pod, labelled app=web, ready at 10.1.0.1 on node-1. */
export function aPod(options: PodOptions = {}): Pod {
  const { name = 'pod', ready = true, ips = ['10.1.0.1'], owner } = options
  const ownerReferences = owner && [
    { apiVersion: 'v1', kind: owner.kind, name: owner.metadata.name, uid: owner.metadata.uid, controller: true },
  ]
  return objectOf(pods, {
    metadata: {
      name,
      namespace: 'default',
      uid: `uid-${name}`,
      labels: options.labels ?? { app: 'web' },
      creationTimestamp: options.created ?? '2026-01-01T00:00:00Z',
      ...(options.deleting === true ? { deletionTimestamp: '2026-01-01T00:00:30Z' } : {}),
      ...(ownerReferences === undefined ? {} : { ownerReferences }),
    },
    spec: {
      ...(options.node === '' ? {} : { nodeName: options.node ?? 'node-1' }),
      containers: [{ name: 'c', image: 'i', ports: [{ name: 'http', containerPort: 8080 }] }],
      ...options.spec,
    },
    status: {
      phase: options.phase ?? 'Running',
      podIPs: ips.map((ip) => ({ ip })),
      conditions: [
        {
          type: 'Ready',
          status: ready ? 'True' : 'False',
          lastTransitionTime: options.readySince ?? '2026-01-01T00:00:00Z',
        },
      ],
    },
  })
}

/** default/web for app=web: port 80 to 8080, IPv4. */
export function aSandboxService(spec: object = {}, metadata: object = {}): Service {
  return objectOf(services, {
    metadata: { name: 'web', namespace: 'default', uid: 'uid-web', ...metadata },
    spec: {
      selector: { app: 'web' },
      ports: [{ port: 80, targetPort: 8080 }],
      clusterIP: '10.96.0.1',
      clusterIPs: ['10.96.0.1'],
      ipFamilies: ['IPv4'],
      ...spec,
    },
  })
}

export function aNode(name: string, options: { zone?: string; spec?: object; labels?: object } = {}): Node {
  const labels = {
    ...(options.zone === undefined ? {} : { 'topology.kubernetes.io/zone': options.zone }),
    ...options.labels,
  }
  return objectOf(nodes, { metadata: { name, labels }, spec: options.spec ?? { podCIDRs: ['10.1.0.0/24'] } })
}

const template = (image: string): object => ({
  metadata: { labels: { app: 'web' } },
  spec: { containers: [{ name: 'c', image }] },
})

export function aDeployment(spec: object = {}, image = 'web:1'): Deployment {
  return objectOf(deployments, {
    metadata: { name: 'web', namespace: 'default', uid: 'uid-web', generation: 1 },
    spec: { replicas: 4, selector: { matchLabels: { app: 'web' } }, template: template(image), ...spec },
  })
}

export interface SetWish {
  readonly replicas: number
  /** All of them when absent. */
  readonly available?: number
  readonly revision?: number
  readonly name?: string
  readonly image?: string
  /** Pods there are, when they are not as many as there should be. */
  readonly pods?: number
}

export function aReplicaSet(options: SetWish): ReplicaSet {
  const {
    replicas,
    available = replicas,
    revision = 1,
    image = 'web:1',
    name = `web-${image.replace(':', '-')}`,
  } = options
  const set = objectOf(replicaSets, {
    metadata: {
      name,
      namespace: 'default',
      uid: `uid-${name}`,
      creationTimestamp: `2026-01-01T00:00:0${revision}Z`,
      annotations: { 'deployment.kubernetes.io/revision': String(revision) },
      ownerReferences: [{ apiVersion: 'apps/v1', kind: 'Deployment', name: 'web', uid: 'uid-web', controller: true }],
    },
    spec: { replicas, selector: { matchLabels: { app: 'web' } }, template: template(image) },
    status: { replicas: options.pods ?? replicas, readyReplicas: available, availableReplicas: available },
  })
  set.spec.template.metadata.labels!['pod-template-hash'] = name
  return set
}

export interface SandboxCluster extends AsyncDisposable {
  readonly registry: Registry
  readonly controllers: Controllers
  readonly clock: ManualClock
  /** Lets everything happen that needs no time. */
  settle(): Promise<void>
}

/** A registry with all controllers and two nodes, whose time stands still. */
export async function openCluster(options: Partial<ControllerOptions> = {}): Promise<SandboxCluster> {
  const clock = new ManualClock(startMs)
  const registry = createRegistry(new Store(), clock)
  bootstrap(registry, { serviceCidrs: ['10.96.0.0/16', 'fd00:96::/112'] })
  const controllers = startControllers({
    registry,
    clock,
    loadBalancerPool: ['192.0.2.0/24', '2001:db8::/112'],
    ...options,
  })
  for (const [i, zone] of ['zone-a', 'zone-b'].entries()) {
    const node = { name: `node-${i + 1}`, zone, podCidrs: [`10.64.${i}.0/24`, `fd00:64:${i}::/64`] }
    registerNode(registry, { ...node, addresses: [`172.30.0.${i + 1}`] }, 'v1.36.0')
  }
  const settle = async (): Promise<void> => {
    do {
      await clock.advance(0)
    } while (!controllers.isIdle)
  }
  await settle()
  return { registry, controllers, clock, settle, [Symbol.asyncDispose]: () => controllers.close() }
}
