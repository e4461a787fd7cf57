// Many services that nothing connects to, and behind them one of each kind.

import type { ApiObject } from '../support/api-server/objects.ts'

export interface Target {
  readonly kind: 'cluster IP' | 'cluster IP, IPv6' | 'with affinity' | 'node port'
  readonly family: 4 | 6
  readonly ip: string
  readonly port: number
  /** One of those behind it. */
  readonly endpoint: string
}

const NODE = '10.255.255.1'
const NODE_PORT = 30_080
const ENDPOINTS = 10

/** The services that are connected to: the last of the list, which matters where rules are a list. */
export function targets(services: number): Target[] {
  const v4 = (index: number) => clusterIP(services + index)
  const endpoint = '10.254.0.1'
  return [
    { kind: 'cluster IP', family: 4, ip: v4(0), port: 80, endpoint },
    { kind: 'cluster IP, IPv6', family: 6, ip: 'fd00:172::1', port: 80, endpoint: 'fd00:10:254::1' },
    { kind: 'with affinity', family: 4, ip: v4(1), port: 80, endpoint },
    { kind: 'node port', family: 4, ip: NODE, port: NODE_PORT, endpoint },
  ]
}

export function packetCluster(services: number): ApiObject[] {
  const objects: ApiObject[] = [
    {
      kind: 'Node',
      metadata: { name: 'bench' },
      status: {
        addresses: [
          { type: 'InternalIP', address: NODE },
          { type: 'InternalIP', address: 'fd00:10:ffff::1' },
        ],
      },
    },
  ]
  // All but those that are measured.
  for (let i = 0; i < services - 1; i++) {
    const address = `10.1.${(i >> 8) & 255}.${i & 255}`
    objects.push(...pair(`other-${i}`, { clusterIP: clusterIP(i) }, [address]))
  }
  const v4 = Array.from({ length: ENDPOINTS }, (_, i) => `10.254.0.${i + 1}`)
  const v6 = Array.from({ length: ENDPOINTS }, (_, i) => `fd00:10:254::${i + 1}`)
  const affinity = { sessionAffinity: 'ClientIP', sessionAffinityConfig: { clientIP: { timeoutSeconds: 10_800 } } }
  objects.push(
    ...pair('target', { clusterIP: clusterIP(services) }, v4),
    ...pair('target-v6', { clusterIP: 'fd00:172::1' }, v6),
    ...pair('target-affinity', { clusterIP: clusterIP(services + 1), ...affinity }, v4),
    ...pair('target-node-port', { clusterIP: clusterIP(services + 2), type: 'NodePort' }, v4),
  )
  return objects
}

function pair(name: string, spec: { clusterIP: string; type?: string }, endpoints: readonly string[]): ApiObject[] {
  const family = spec.clusterIP.includes(':') ? 'IPv6' : 'IPv4'
  const port = { name: 'http', port: 80, protocol: 'TCP', targetPort: 8080 }
  return [
    {
      kind: 'Service',
      metadata: { name },
      spec: {
        type: 'ClusterIP',
        clusterIPs: [spec.clusterIP],
        ipFamilies: [family],
        ipFamilyPolicy: 'SingleStack',
        internalTrafficPolicy: 'Cluster',
        externalTrafficPolicy: 'Cluster',
        sessionAffinity: 'None',
        ...spec,
        ports: [spec.type === 'NodePort' ? { ...port, nodePort: NODE_PORT } : port],
      },
    },
    {
      kind: 'EndpointSlice',
      metadata: { name: `${name}-1`, labels: { 'kubernetes.io/service-name': name } },
      addressType: family,
      endpoints: endpoints.map((address) => ({ addresses: [address], conditions: { ready: true } })),
      ports: [{ name: 'http', port: 8080, protocol: 'TCP' }],
    },
  ]
}

function clusterIP(index: number): string {
  return `172.${16 + (index >> 16)}.${(index >> 8) & 255}.${index & 255}`
}
