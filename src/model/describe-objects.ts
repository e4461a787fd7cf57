// API objects from what the model keeps, for commands that ask the proxy what it knows. They are of one family and lack fields that
// the proxy does not use. A model that gets them makes the same decisions.

import type { EndpointSlice, NamespacedName, Service, SliceEndpoint } from '../kube/types.ts'
import { formatCidr, formatIp, type Family } from '../lib/ip.ts'
import type { ServiceInfo } from './service-ports.ts'
import { addressAt, READY, SERVING, TERMINATING, type SliceRecord } from './slice-record.ts'
import { WEIGHTS_ANNOTATION } from './weights.ts'

/** Can be iterated once: each object is made when it is needed. */
export interface ModelObjects {
  readonly services: Iterable<Service>
  readonly slices: Iterable<EndpointSlice>
}

export function describeObjects(
  family: Family,
  infos: readonly ServiceInfo[],
  records: readonly SliceRecord[],
): ModelObjects {
  return { services: each(infos, describeService), slices: each(records, (record) => describeSlice(record, family)) }
}

function* each<T, U>(values: Iterable<T>, describe: (value: T) => U): Generator<U> {
  for (const value of values) yield describe(value)
}

export function describeService(info: ServiceInfo): Service {
  return {
    namespace: info.namespace,
    name: info.name,
    type: typeOf(info),
    clusterIPs: [info.clusterIP],
    externalIPs: info.externalIPs,
    ports: info.ports.map(({ portName, protocol, port, nodePort }) => ({ name: portName, protocol, port, nodePort })),
    sessionAffinity: info.affinitySeconds === undefined ? 'None' : 'ClientIP',
    affinityTimeoutSeconds: info.affinitySeconds,
    externalTrafficPolicy: info.externalPolicyLocal ? 'Local' : 'Cluster',
    internalTrafficPolicy: info.internalPolicyLocal ? 'Local' : 'Cluster',
    loadBalancerSourceRanges: info.sourceRanges.map(formatCidr),
    healthCheckNodePort: info.healthCheckNodePort,
    ingress: info.loadBalancerIPs.map((ip) => ({ ip, ipMode: 'VIP' })),
    labels: undefined,
    annotations: info.annotations.texts,
    createdMs: info.createdMs,
  }
}

/** The model does not keep the type: this is one with the same effect. */
function typeOf({ healthCheckNodePort, externalPolicyLocal, loadBalancerIPs, ports }: ServiceInfo): string {
  if (healthCheckNodePort !== 0) return 'LoadBalancer'
  if (externalPolicyLocal) return 'NodePort'
  if (loadBalancerIPs.length > 0) return 'LoadBalancer'
  return ports.some(({ nodePort }) => nodePort !== 0) ? 'NodePort' : 'ClusterIP'
}

export function describeSlice(record: SliceRecord, family: Family): EndpointSlice {
  const [namespace, name] = splitKey(record.key)
  const [, serviceName] = splitKey(record.service)
  return {
    namespace,
    name,
    serviceName,
    addressType: `IPv${family}`,
    ports: record.ports.map(({ name: portName, protocol, port }) => ({ name: portName, protocol, port })),
    endpoints: Array.from(record.conditions, (_, i) => describeEndpoint(record, i)),
    triggerTimeMs: undefined,
    annotations: record.weights && { [WEIGHTS_ANNOTATION]: record.weights.text },
  }
}

function describeEndpoint(record: SliceRecord, i: number): SliceEndpoint {
  const conditions = record.conditions.charCodeAt(i)
  return {
    address: formatIp(addressAt(record, i)),
    ready: (conditions & READY) !== 0,
    serving: (conditions & SERVING) !== 0,
    terminating: (conditions & TERMINATING) !== 0,
    nodeName: record.nodeNames[i] || undefined,
    zoneHints: record.zoneHints?.[i],
    nodeHints: record.nodeHints?.[i],
  }
}

function splitKey(key: NamespacedName): [namespace: string, name: string] {
  const slash = key.indexOf('/')
  return [key.slice(0, slash), key.slice(slash + 1)]
}
