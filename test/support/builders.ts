// Kubernetes objects as the API server sends them: plain JSON, complete, with as little as possible to say in a test.
//
//   const web = aService({ type: 'NodePort' })
//   const objects = [web, aSlice(web, ['localB', { pod: 'remoteA', ready: false }])]
//
// Names, cluster IPs and node ports are given out one after the other, so that the objects of many tests can live in
// one cluster at the same time.

import type { Family } from '../../src/lib/ip.ts'
import type { Protocol } from '../../src/kube/types.ts'
import { node, peer, pods, ranges } from './addresses.ts'
import type { PodName } from './addresses.ts'

export interface ObjectMeta {
  name: string
  namespace?: string
  uid?: string
  labels?: Record<string, string>
  annotations?: Record<string, string>
  creationTimestamp?: string
}

export interface ApiServicePort {
  name?: string
  protocol: Protocol
  port: number
  targetPort: number
  nodePort?: number
}

export interface ApiService {
  apiVersion: 'v1'
  kind: 'Service'
  metadata: ObjectMeta & { namespace: string }
  spec: {
    type: string
    clusterIP: string
    clusterIPs: string[]
    ipFamilies: string[]
    ports: ApiServicePort[]
    [field: string]: unknown
  }
  status: { loadBalancer: { ingress?: { ip: string; ipMode?: string }[] } }
}

export interface ApiEndpoint {
  addresses: string[]
  conditions?: { ready?: boolean; serving?: boolean; terminating?: boolean }
  nodeName?: string
  zone?: string
  hints?: { forZones?: { name: string }[]; forNodes?: { name: string }[] }
}

export interface ApiEndpointSlice {
  apiVersion: 'discovery.k8s.io/v1'
  kind: 'EndpointSlice'
  metadata: ObjectMeta & { namespace: string }
  addressType: string
  ports: { name?: string; protocol?: Protocol; port?: number }[]
  endpoints: ApiEndpoint[]
}

export interface ApiNode {
  apiVersion: 'v1'
  kind: 'Node'
  metadata: ObjectMeta
  spec: { podCIDR?: string; podCIDRs?: string[]; taints?: { key: string; value?: string; effect: string }[] }
  status: { addresses: { type: string; address: string }[] }
}

export interface ApiServiceCidr {
  apiVersion: 'networking.k8s.io/v1'
  kind: 'ServiceCIDR'
  metadata: ObjectMeta
  spec: { cidrs: string[] }
}

export type ApiObject = ApiService | ApiEndpointSlice | ApiNode | ApiServiceCidr

/** What a test says about a service; everything else has a default. */
export interface ServiceWish {
  name?: string
  namespace?: string
  type?: 'ClusterIP' | 'NodePort' | 'LoadBalancer'
  /** Which cluster IPs it has; 4 unless told. */
  families?: readonly Family[]
  clusterIPs?: readonly string[]
  ports?: readonly Partial<ApiServicePort>[]
  ingress?: readonly { ip: string; ipMode?: string }[]
  labels?: Record<string, string>
  annotations?: Record<string, string>
  /** Any further field of the spec, under the API's own name. */
  spec?: Record<string, unknown>
}

/** An endpoint: a pod that is ready, or one of which the test says more. */
export type EndpointWish =
  | PodName
  | {
      pod?: PodName
      /** Instead of a pod's address. */
      address?: string
      /** `undefined` leaves the conditions out. */
      ready?: boolean | undefined
      serving?: boolean
      terminating?: boolean
      nodeName?: string
      zone?: string
      forZones?: readonly string[]
      forNodes?: readonly string[]
    }

export interface SliceWish {
  name?: string
  family?: Family
  /** Unless told: a port for each port of the service. */
  ports?: readonly { name?: string; protocol?: Protocol; port?: number }[]
  labels?: Record<string, string>
  annotations?: Record<string, string>
}

const next = { name: 0, clusterIp: 0, nodePort: 30_000, address: 0 }

/** A name that no other object of this process has. */
export function aName(prefix: string): string {
  return `${prefix}-${++next.name}`
}

/** A cluster IP that no other service of this process has. */
export function aClusterIp(family: Family): string {
  const n = ++next.clusterIp
  return family === 4 ? `10.2.${1 + (n >> 8)}.${n & 255}` : `fd02::${(256 + n).toString(16)}`
}

/** An address outside the cluster (for a load balancer or an external IP) that no other test of this process has. */
export function anExternalIp(family: Family): string {
  const n = ++next.address
  return family === 4 ? `10.4.${n >> 8}.${n & 255}` : `fd04::${n.toString(16)}`
}

/** A node port that no other service of this process has. */
export function aNodePort(): number {
  return ++next.nodePort
}

/** A Service. Without a wish: ClusterIP, IPv4, one unnamed port, 80 to 8080 over TCP. */
export function aService(wish: ServiceWish = {}): ApiService {
  const { name = aName('svc'), namespace = 'default', type = 'ClusterIP', families = [4], labels, annotations } = wish
  const clusterIPs = [...(wish.clusterIPs ?? families.map(aClusterIp))]
  const ports = (wish.ports ?? [{}]).map((port): ApiServicePort => {
    const nodePort = type === 'ClusterIP' ? {} : { nodePort: aNodePort() }
    return { protocol: 'TCP', port: 80, targetPort: 8080, ...nodePort, ...port }
  })
  const needsHealthCheck = type === 'LoadBalancer' && wish.spec?.['externalTrafficPolicy'] === 'Local'
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: {
      name,
      namespace,
      uid: `uid-${namespace}-${name}`,
      ...(labels && { labels }),
      ...(annotations && { annotations }),
    },
    spec: {
      type,
      clusterIP: clusterIPs[0] ?? '',
      clusterIPs,
      ipFamilies: families.map((family) => `IPv${family}`),
      ports,
      sessionAffinity: 'None',
      internalTrafficPolicy: 'Cluster',
      ...(type === 'ClusterIP' ? {} : { externalTrafficPolicy: 'Cluster' }),
      ...(needsHealthCheck ? { healthCheckNodePort: aNodePort() } : {}),
      ...wish.spec,
    },
    status: { loadBalancer: wish.ingress ? { ingress: [...wish.ingress] } : {} },
  }
}

/** A slice of a service's endpoints, of one family. */
export function aSlice(
  service: ApiService,
  endpoints: readonly EndpointWish[],
  wish: SliceWish = {},
): ApiEndpointSlice {
  const { namespace, name: serviceName } = service.metadata
  const family = wish.family ?? (service.spec.ipFamilies[0] === 'IPv6' ? 6 : 4)
  const ports =
    wish.ports ?? service.spec.ports.map((p) => ({ name: p.name ?? '', protocol: p.protocol, port: p.targetPort }))
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: {
      name: wish.name ?? aName(serviceName),
      namespace,
      labels: { 'kubernetes.io/service-name': serviceName, ...wish.labels },
      ...(wish.annotations && { annotations: wish.annotations }),
    },
    addressType: `IPv${family}`,
    ports: ports.map((port) => ({ ...port })),
    endpoints: endpoints.map((endpoint) => anEndpoint(endpoint, family)),
  }
}

/** One endpoint as a slice holds it. */
export function anEndpoint(wish: EndpointWish, family: Family): ApiEndpoint {
  const given = typeof wish === 'string' ? { pod: wish, ready: true } : { ready: true, ...wish }
  const pod = given.pod === undefined ? undefined : pods[given.pod]
  const nodeName = given.nodeName ?? pod?.nodeName
  const zone = given.zone ?? pod?.zone
  const { ready, serving = ready, terminating = false, forZones, forNodes } = given
  return {
    addresses: [given.address ?? pod?.ip[family] ?? ''],
    ...(ready === undefined ? {} : { conditions: { ready, serving: serving ?? ready, terminating } }),
    ...(nodeName === undefined ? {} : { nodeName }),
    ...(zone === undefined ? {} : { zone }),
    ...(forZones === undefined && forNodes === undefined
      ? {}
      : {
          hints: {
            ...(forZones && { forZones: forZones.map((name) => ({ name })) }),
            ...(forNodes && { forNodes: forNodes.map((name) => ({ name })) }),
          },
        }),
  }
}

/** A Node: the one under test, or its peer. */
export function aNode(which: typeof node | typeof peer = node): ApiNode {
  const podRanges = which === node ? ranges.localPods : ranges.remotePods
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: {
      name: which.name,
      uid: `uid-${which.name}`,
      labels: { 'kubernetes.io/hostname': which.name, 'topology.kubernetes.io/zone': which.zone },
    },
    spec: { podCIDR: podRanges[4], podCIDRs: [podRanges[4], podRanges[6]] },
    status: {
      addresses: [
        { type: 'InternalIP', address: which.ip[4] },
        { type: 'InternalIP', address: which.ip[6] },
        { type: 'Hostname', address: which.name },
      ],
    },
  }
}

/** The ranges that cluster IPs are taken from, as the API server publishes them. */
export function aServiceCidr(): ApiServiceCidr {
  return {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'ServiceCIDR',
    metadata: { name: 'kubernetes' },
    spec: { cidrs: [ranges.services[4], ranges.services[6]] },
  }
}

/** What every cluster has before the first service: two nodes and the service ranges. */
export function anEmptyCluster(): ApiObject[] {
  return [aNode(node), aNode(peer), aServiceCidr()]
}
