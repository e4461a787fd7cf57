// What is read from a Service (core/v1).

import type { JsonReader } from '../encoding/json-reader.ts'
import { field, list } from '../encoding/message-to-json.ts'
import type { Resource } from '../resource.ts'
import type { LoadBalancerIngress, Service, ServicePort } from '../types.ts'
import { readersOf } from './object-meta.ts'
import { parseProtocol } from './protocol.ts'

export const services: Resource<Service> = {
  name: 'services',
  kind: 'Service',
  path: '/api/v1/services',
  ...readersOf({
    keepKey: (key) => key.startsWith('service.'),
    message: {
      2: field('spec', {
        1: list('ports', {
          1: field('name', 'pooled'),
          2: field('protocol', 'pooled'),
          3: field('port', 'number'),
          5: field('nodePort', 'number'),
        }),
        3: field('clusterIP', 'text'),
        4: field('type', 'pooled'),
        5: list('externalIPs', 'text'),
        7: field('sessionAffinity', 'pooled'),
        9: list('loadBalancerSourceRanges', 'pooled'),
        11: field('externalTrafficPolicy', 'pooled'),
        12: field('healthCheckNodePort', 'number'),
        14: field('sessionAffinityConfig', { 1: field('clientIP', { 1: field('timeoutSeconds', 'number') }) }),
        18: list('clusterIPs', 'text'),
        22: field('internalTrafficPolicy', 'pooled'),
      }),
      3: field('status', {
        1: field('loadBalancer', { 1: list('ingress', { 1: field('ip', 'text'), 3: field('ipMode', 'pooled') }) }),
      }),
    },
    /** Optional fields get the API's own defaults. */
    read(meta, json, reader) {
      const spec = reader.object(json['spec'])
      const loadBalancer = reader.object(reader.object(json['status'])['loadBalancer'])
      const { timeoutSeconds } = reader.object(reader.object(spec['sessionAffinityConfig'])['clientIP'])
      const clusterIP = reader.string(spec['clusterIP'])
      const clusterIPs = reader.strings(spec['clusterIPs'])
      return {
        namespace: meta.namespace,
        name: meta.name,
        type: reader.pooled(spec['type']) || 'ClusterIP',
        // Servers before 1.20 know the singular only.
        clusterIPs: fitted(clusterIPs.length === 0 && clusterIP !== '' ? [clusterIP] : clusterIPs),
        externalIPs: fitted(reader.strings(spec['externalIPs'])),
        ports: fitted(portsOf(spec['ports'], reader)),
        sessionAffinity: reader.pooled(spec['sessionAffinity']) || 'None',
        affinityTimeoutSeconds: typeof timeoutSeconds === 'number' ? reader.int(timeoutSeconds) : undefined,
        externalTrafficPolicy: reader.pooled(spec['externalTrafficPolicy']) || 'Cluster',
        internalTrafficPolicy: reader.pooled(spec['internalTrafficPolicy']) || 'Cluster',
        loadBalancerSourceRanges: fitted(reader.strings(spec['loadBalancerSourceRanges'])),
        healthCheckNodePort: reader.int(spec['healthCheckNodePort']),
        ingress: fitted(ingressOf(loadBalancer['ingress'], reader)),
        labels: meta.labels,
        annotations: meta.annotations,
        createdMs: meta.createdMs,
      }
    },
  }),
}

const NONE: readonly never[] = []

/** A copy without the memory that push() reserves. Most lists here have one element, or none. */
function fitted<T>(elements: readonly T[]): readonly T[] {
  return elements.length === 0 ? NONE : elements.slice()
}

function portsOf(value: unknown, reader: JsonReader): ServicePort[] {
  return reader.objects(value).flatMap(({ name, protocol: text, port, nodePort }) => {
    const protocol = parseProtocol(reader.pooled(text))
    if (protocol === undefined) return []
    return [{ name: reader.pooled(name), protocol, port: reader.int(port), nodePort: reader.int(nodePort) }]
  })
}

/** Without those that have only a host name. */
function ingressOf(value: unknown, reader: JsonReader): LoadBalancerIngress[] {
  return reader.objects(value).flatMap(({ ip: text, ipMode }) => {
    const ip = reader.string(text)
    return ip === '' ? [] : [{ ip, ipMode: reader.pooled(ipMode) || 'VIP' }]
  })
}
