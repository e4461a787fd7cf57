// A random cluster as an API server has it: the same services and slices, as JSON.

import type { EndpointSlice, Service } from '../../src/kube/types.ts'
import type { ApiEndpointSlice, ApiObject, ApiService } from './builders.ts'
import type { RandomCluster } from './random-clusters.ts'

export function objectsOf({ services, slices }: RandomCluster): ApiObject[] {
  return [...services.map(serviceObject), ...slices.map(sliceObject)]
}

function serviceObject(service: Service): ApiService {
  const { namespace, name, type, clusterIPs, labels, annotations, createdMs, ingress } = service
  const isIpv6 = [...clusterIPs, ...service.externalIPs, ...ingress.map(({ ip }) => ip)].some((ip) => ip.includes(':'))
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: {
      namespace,
      name,
      uid: name,
      // The API knows whole seconds.
      creationTimestamp: new Date((createdMs ?? 0) * 1000).toISOString(),
      ...(labels && { labels: { ...labels } }),
      ...(annotations && { annotations: { ...annotations } }),
    },
    spec: {
      type,
      clusterIP: clusterIPs[0]!,
      clusterIPs: [...clusterIPs],
      ipFamilies: [isIpv6 ? 'IPv6' : 'IPv4'],
      ports: service.ports.map(({ name: portName, protocol, port, nodePort }) => ({
        name: portName,
        protocol,
        port,
        targetPort: 8080,
        ...(nodePort === 0 ? {} : { nodePort }),
      })),
      externalIPs: [...service.externalIPs],
      sessionAffinity: service.sessionAffinity,
      sessionAffinityConfig: { clientIP: { timeoutSeconds: service.affinityTimeoutSeconds } },
      externalTrafficPolicy: service.externalTrafficPolicy,
      internalTrafficPolicy: service.internalTrafficPolicy,
      loadBalancerSourceRanges: [...service.loadBalancerSourceRanges],
      ...(service.healthCheckNodePort === 0 ? {} : { healthCheckNodePort: service.healthCheckNodePort }),
    },
    status: { loadBalancer: { ingress: ingress.map(({ ip, ipMode }) => ({ ip, ipMode })) } },
  }
}

function sliceObject({ namespace, name, serviceName, addressType, ports, endpoints }: EndpointSlice): ApiEndpointSlice {
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { namespace, name, labels: { 'kubernetes.io/service-name': serviceName } },
    addressType,
    ports: ports.map(({ name: portName, protocol, port = 0 }) => ({ name: portName, protocol, port })),
    endpoints: endpoints.map(({ address, ready, serving, terminating, nodeName, zoneHints, nodeHints }) => ({
      addresses: [address],
      conditions: { ready, serving, terminating },
      ...(nodeName === undefined ? {} : { nodeName }),
      ...(zoneHints === undefined && nodeHints === undefined
        ? {}
        : {
            hints: {
              ...(zoneHints && { forZones: zoneHints.map((hint) => ({ name: hint })) }),
              ...(nodeHints && { forNodes: nodeHints.map((hint) => ({ name: hint })) }),
            },
          }),
    })),
  }
}
