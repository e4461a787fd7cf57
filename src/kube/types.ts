// API objects with only the fields that are read, under the API's names. Absent is undefined or an empty list, never null.

export type Protocol = 'TCP' | 'UDP' | 'SCTP'

/** A Service, reduced to what the proxy reads. */
export interface Service {
  readonly namespace: string
  readonly name: string
  readonly type: string
  readonly clusterIPs: readonly string[]
  readonly externalIPs: readonly string[]
  readonly ports: readonly ServicePort[]
  readonly sessionAffinity: string
  /** sessionAffinityConfig.clientIP.timeoutSeconds */
  readonly affinityTimeoutSeconds: number | undefined
  readonly externalTrafficPolicy: string
  readonly internalTrafficPolicy: string
  readonly loadBalancerSourceRanges: readonly string[]
  readonly healthCheckNodePort: number
  readonly ingress: readonly LoadBalancerIngress[]
  /** Only those whose names begin with `service.` (`service.kubernetes.io/headless`). */
  readonly labels: Readonly<Record<string, string>> | undefined
  readonly annotations: Readonly<Record<string, string>> | undefined
  /** metadata.creationTimestamp in milliseconds; 0 when unknown. The older of two services owns an address that both claim. */
  readonly createdMs: number
}

export interface ServicePort {
  readonly name: string
  readonly protocol: Protocol
  readonly port: number
  readonly nodePort: number
}

export interface LoadBalancerIngress {
  readonly ip: string
  /** 'VIP' unless the load balancer says 'Proxy'. */
  readonly ipMode: string
}

/** An EndpointSlice (or one family's half of an Endpoints object), reduced to what the proxy reads. */
export interface EndpointSlice {
  readonly namespace: string
  readonly name: string
  /** Label kubernetes.io/service-name. */
  readonly serviceName: string
  readonly addressType: string
  readonly ports: readonly EndpointPort[]
  readonly endpoints: readonly SliceEndpoint[]
  /** Annotation endpoints.kubernetes.io/last-change-trigger-time in milliseconds. */
  readonly triggerTimeMs: number | undefined
  /** Only ours. */
  readonly annotations?: Readonly<Record<string, string>> | undefined
}

export interface EndpointPort {
  readonly name: string
  readonly protocol: Protocol
  /** Undefined: all ports, which a proxy ignores. */
  readonly port: number | undefined
}

export interface SliceEndpoint {
  /** The first of `addresses`: the only one a proxy uses. */
  readonly address: string
  readonly ready: boolean
  readonly serving: boolean
  readonly terminating: boolean
  readonly nodeName: string | undefined
  /** hints.forZones[].name and hints.forNodes[].name; undefined when there are none. */
  readonly zoneHints: readonly string[] | undefined
  readonly nodeHints: readonly string[] | undefined
}

/** A Node, reduced to what the proxy reads. */
export interface Node {
  readonly name: string
  /** Label topology.kubernetes.io/zone. */
  readonly zone: string | undefined
  readonly addresses: readonly { readonly type: string; readonly address: string }[]
  readonly podCIDRs: readonly string[]
  readonly deleting: boolean
  /** The keys of spec.taints. */
  readonly taints: readonly string[]
}

/** A ServiceCIDR: a range from which cluster IPs are allocated. Its key is its name. */
export interface ServiceCIDR {
  readonly name: string
  readonly cidrs: readonly string[]
}

/** `namespace/name`, the key under which an object is stored. */
export type NamespacedName = string

export function namespacedName(object: { readonly namespace: string; readonly name: string }): NamespacedName {
  return `${object.namespace}/${object.name}`
}
