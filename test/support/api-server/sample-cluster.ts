// Objects as a cluster has them, by the thousand.

import type { ApiObject } from './objects.ts'

export interface ClusterSize {
  readonly services: number
  readonly endpointsPerService: number
  readonly nodes?: number
  readonly zones?: number
}

/** Services with one EndpointSlice each, endpoints spread over nodes and zones. */
export function* clusterOf(size: ClusterSize): Iterable<ApiObject> {
  const { services, endpointsPerService, nodes = 100, zones = 3 } = size
  for (let index = 0; index < services; index++) {
    const name = `service-${index}`
    yield serviceOf(name, index)
    const endpoints = Array.from({ length: endpointsPerService }, (_, member) => {
      const number = index * endpointsPerService + member
      return {
        addresses: [address(10 << 24, number)],
        conditions: { ready: true, serving: true, terminating: false },
        nodeName: `node-${number % nodes}`,
        zone: `zone-${number % zones}`,
        targetRef: { kind: 'Pod', namespace: 'default', name: `${name}-7d9c6f5b8-${member}`, uid: podUid(number) },
      }
    })
    yield {
      kind: 'EndpointSlice',
      metadata: {
        name: `${name}-abc12`,
        labels: {
          'endpointslice.kubernetes.io/managed-by': 'endpointslice-controller.k8s.io',
          'kubernetes.io/service-name': name,
        },
      },
      addressType: 'IPv4',
      endpoints,
      ports: [{ name: 'http', port: 8080, protocol: 'TCP' }],
    }
  }
}

function serviceOf(name: string, index: number): ApiObject {
  const clusterIP = address((172 << 24) | (16 << 16), index + 10)
  return {
    kind: 'Service',
    metadata: { name, labels: { app: name } },
    spec: {
      type: 'ClusterIP',
      clusterIP,
      clusterIPs: [clusterIP],
      ipFamilies: ['IPv4'],
      ipFamilyPolicy: 'SingleStack',
      selector: { app: name },
      sessionAffinity: 'None',
      internalTrafficPolicy: 'Cluster',
      ports: [{ name: 'http', port: 80, protocol: 'TCP', targetPort: 8080 }],
    },
    status: { loadBalancer: {} },
  }
}

function address(base: number, offset: number): string {
  const bits = (base + offset) >>> 0
  return `${bits >>> 24}.${(bits >>> 16) & 255}.${(bits >>> 8) & 255}.${bits & 255}`
}

function podUid(number: number): string {
  return `8c1f8a52-3f0e-4a51-9d3c-${String(number).padStart(12, '0')}`
}

/** The node on which a benchmark runs. */
export function benchNode(address = '127.0.0.1'): ApiObject {
  return { kind: 'Node', metadata: { name: 'bench' }, status: { addresses: [{ type: 'InternalIP', address }] } }
}
