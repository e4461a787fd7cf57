// Kubernetes objects as the proxy keeps them after decoding (src/kube/types.ts), with as little as possible to say in a
// test. The same objects as the API server sends them: builders.ts.

import { asBytes } from '../../src/lib/ip.ts'
import type { EndpointPort, EndpointSlice, Service, ServicePort, SliceEndpoint } from '../../src/kube/types.ts'
import type { NodeView } from '../../src/model/types.ts'

/** A Service. Without a wish: default/web, ClusterIP 10.0.0.1, one unnamed port 80 over TCP. */
export function service(
  wish: Omit<Partial<Service>, 'ports'> & { ports?: readonly Partial<ServicePort>[] } = {},
): Service {
  return {
    namespace: 'default',
    name: 'web',
    type: 'ClusterIP',
    clusterIPs: ['10.0.0.1'],
    externalIPs: [],
    sessionAffinity: 'None',
    affinityTimeoutSeconds: undefined,
    externalTrafficPolicy: 'Cluster',
    internalTrafficPolicy: 'Cluster',
    loadBalancerSourceRanges: [],
    healthCheckNodePort: 0,
    ingress: [],
    labels: undefined,
    annotations: undefined,
    createdMs: 0,
    ...wish,
    ports: (wish.ports ?? [{}]).map((port) => ({ name: '', protocol: 'TCP', port: 80, nodePort: 0, ...port })),
  }
}

/** An endpoint, by its address or with more to say: ready, on no node, without hints. */
export function endpoint(wish: string | (Partial<SliceEndpoint> & { address: string })): SliceEndpoint {
  return {
    ready: true,
    serving: true,
    terminating: false,
    nodeName: undefined,
    zoneHints: undefined,
    nodeHints: undefined,
    ...(typeof wish === 'string' ? { address: wish } : wish),
  }
}

/** Conditions of an endpoint that is on its way out but still serves. */
export const draining = { ready: false, serving: true, terminating: true } as const

/** Conditions of an endpoint that does not serve any longer. */
export const finished = { ready: false, serving: false, terminating: true } as const

/** A slice. Without a wish: default/web-1 of the service default/web, one unnamed port 8080 over TCP. */
export function slice(
  endpoints: readonly Parameters<typeof endpoint>[0][],
  wish: Omit<Partial<EndpointSlice>, 'ports'> & { ports?: readonly Partial<EndpointPort>[] } = {},
): EndpointSlice {
  return {
    namespace: 'default',
    name: 'web-1',
    serviceName: 'web',
    addressType: 'IPv4',
    triggerTimeMs: undefined,
    ...wish,
    ports: (wish.ports ?? [{}]).map((port) => ({ name: '', protocol: 'TCP', port: 8080, ...port })),
    endpoints: endpoints.map(endpoint),
  }
}

/** node-a in zone-a, 192.168.0.1, which knows pods by 10.1.0.0/16 and has node ports on its own address. */
export function nodeView(wish: Partial<NodeView> = {}): NodeView {
  return {
    family: 4,
    nodeName: 'node-a',
    nodeIp: '192.168.0.1',
    zone: 'zone-a',
    localDetector: { kind: 'cidr', cidrs: [{ family: 4, network: asBytes('\x0a\x01\0\0'), prefix: 16 }] },
    masqueradeAll: false,
    masqueradeMark: 0x4000,
    nodePortAddresses: { kind: 'only', addresses: ['192.168.0.1'] },
    serviceCidrs: [],
    ...wish,
  }
}
