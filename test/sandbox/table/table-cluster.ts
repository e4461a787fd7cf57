// The objects of the packet-flow table in a sandbox's API server.

import { eventually } from '../../support/eventually.ts'
import { aService, aSlice, type ApiObject, type ApiService } from '../../support/builders.ts'
import { pods, type DualStack, type PodName } from '../../support/addresses.ts'
import { podNames } from './dialect.ts'
import type { ApiAccess } from '../support/api-access.ts'
import type { AddressMap, PodAddresses } from './address-map.ts'

/** Somebody else's than the sandbox's: the table itself says which address such a service has. */
const loadBalancerClass = 'example.com/packet-flow-table'
const ports = [8080, 9090].map((containerPort) => ({ containerPort }))

/** Makes the pods of the table, and one on node-1 itself. Returns their addresses when all of them are ready. */
export async function createPods(api: ApiAccess): Promise<PodAddresses> {
  for (const [name, podName] of Object.entries(podNames)) {
    const isRemote = name.startsWith('remote')
    await api.create('/api/v1/namespaces/default/pods', {
      metadata: { name: podName },
      spec: {
        nodeName: isRemote ? 'node-2' : 'node-1',
        hostNetwork: name === 'node',
        containers: [{ name: 'whoami', image: 'whoami', ports }],
      },
    })
  }
  let found: readonly PodJson[] = []
  await eventually('the pods are ready', async () => {
    found = (await api.get('/api/v1/namespaces/default/pods')).items as readonly PodJson[]
    const waiting = found.filter(({ status }) => status.phase !== 'Running')
    return waiting.length === 0 ? undefined : `${waiting.length} are not`
  })
  const addresses = (Object.keys(pods) as PodName[]).map((name): [PodName, DualStack] => {
    const [v4, v6] = found.find(({ metadata }) => metadata.name === podNames[name])!.status.podIPs
    return [name, { 4: v4!.ip, 6: v6!.ip }]
  })
  return Object.fromEntries(addresses) as Record<PodName, DualStack>
}

interface PodJson {
  readonly metadata: { readonly name: string }
  readonly status: { readonly phase: string; readonly podIPs: readonly { readonly ip: string }[] }
}

/** Objects as the table has them go in and out; the sandbox has them with addresses of its own. */
export class TableCluster {
  readonly #api: ApiAccess
  readonly #addresses: AddressMap
  readonly #namespaces = new Map([['default', Promise.resolve<unknown>(undefined)]])

  constructor(api: ApiAccess, addresses: AddressMap) {
    this.#api = api
    this.#addresses = addresses
  }

  /** Creates the objects, or replaces those of their names. */
  async put(...objects: readonly ApiObject[]): Promise<void> {
    for (const object of objects) {
      await this.#createNamespace(object.metadata.namespace ?? '')
      await this.#api.put(pathOf(object), this.#asSent(object))
      if (object.kind === 'Service' && object.spec.type === 'LoadBalancer') await this.#giveAddresses(object)
    }
  }

  /** Deletes the objects; those that do not exist are passed over. */
  async remove(...objects: readonly ApiObject[]): Promise<void> {
    for (const object of objects) {
      await this.#api.delete(pathOf(object)).catch((error: unknown) => {
        if (!String(error).includes('"code":404')) throw error
      })
    }
  }

  /**
   * Calls back with the cluster IPs of a service until all of them are said to answer. Events of one kind arrive in order:
   * when a service and slices that came last are seen to work, all that was put or removed before has been dealt with.
   */
  async settled(answers: (clusterIp: string) => Promise<boolean>, withinMs: number): Promise<void> {
    const sentinel = aService({ families: [4, 6] })
    const slices = ([4, 6] as const).map((family) => aSlice(sentinel, ['localB'], { family }))
    await this.put(sentinel, ...slices)
    for (const ip of sentinel.spec.clusterIPs) {
      const own = this.#addresses.text(ip)
      const check = async () => ((await answers(own)) ? undefined : `${own} does not answer yet`)
      await eventually('the proxies have caught up', check, { withinMs, everyMs: 5 })
    }
    await this.remove(sentinel, ...slices)
  }

  #createNamespace(name: string): Promise<unknown> {
    const created = this.#namespaces.get(name) ?? this.#api.create('/api/v1/namespaces', { metadata: { name } })
    this.#namespaces.set(name, created)
    return created
  }

  /** Without what only an API server says about an object. */
  #asSent(object: ApiObject): object {
    const { uid: _, creationTimestamp: __, ...metadata } = object.metadata
    const sent = this.#addresses.value({ ...object, metadata }) as ApiObject
    if (sent.kind !== 'Service') return sent
    const { spec } = sent
    const ipFamilyPolicy = spec.clusterIPs.length === 1 ? 'SingleStack' : 'RequireDualStack'
    return {
      ...sent,
      spec: { ...spec, ipFamilyPolicy, ...(spec.type === 'LoadBalancer' && { loadBalancerClass }) },
    }
  }

  #giveAddresses(service: ApiService): Promise<unknown> {
    const ingress = this.#addresses.value(service.status.loadBalancer.ingress ?? null)
    return this.#api.patch(`${pathOf(service)}/status`, { status: { loadBalancer: { ingress } } })
  }
}

function pathOf({ kind, metadata }: ApiObject): string {
  const { namespace, name } = metadata
  switch (kind) {
    case 'Service':
      return `/api/v1/namespaces/${namespace}/services/${name}`
    case 'EndpointSlice':
      return `/apis/discovery.k8s.io/v1/namespaces/${namespace}/endpointslices/${name}`
    default:
      throw new TypeError(`Cannot put a ${kind} into a sandbox: it has its own`)
  }
}
