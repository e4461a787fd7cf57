// What is known of a Service: by the proxy, and by the API server where one was asked.

import type { Known } from '../explain/known.ts'
import type { ReadObjects } from '../explain/read-known.ts'
import type { JsonObject } from '../../lib/json.ts'
import type { Service } from '../../kube/types.ts'
import type { PodFact, ServiceFact } from './facts.ts'

export function serviceFact(known: Known, objects: ReadObjects | undefined, name: string): ServiceFact | undefined {
  const service = known.services.find((each) => `${each.namespace}/${each.name}` === name)
  if (service === undefined) return undefined
  const raw = objects?.raw.services.find((json) => keyOf(json) === name)
  const spec = recordOf(raw?.['spec'])
  const selector = raw === undefined ? 'not known' : stringsOf(spec['selector'])
  const own = known.slices.filter((slice) => `${slice.namespace}/${slice.serviceName}` === name)
  const endpoints = own.flatMap((slice) => slice.endpoints)
  const hasAddress = service.ingress.length > 0 || service.externalIPs.length > 0
  const loadBalancerClass = spec['loadBalancerClass']
  // A proxy keeps none: it says one with the same effect.
  const type = typeof spec['type'] === 'string' ? spec['type'] : service.type
  return {
    type,
    clusterIP: service.clusterIPs[0] ?? '',
    awaitsLoadBalancer: type === 'LoadBalancer' && !hasAddress,
    loadBalancerClass: typeof loadBalancerClass === 'string' ? loadBalancerClass : undefined,
    externalName: typeof spec['externalName'] === 'string' ? spec['externalName'] : '',
    proxyName: service.labels?.['service.kubernetes.io/service-proxy-name'],
    selector,
    ports: portsOf(service, raw === undefined ? undefined : spec),
    pods:
      objects === undefined || selector === undefined || selector === 'not known'
        ? undefined
        : podsOf(objects, service.namespace, selector),
    endpoints: {
      count: endpoints.length,
      ready: endpoints.filter(({ ready }) => ready).length,
      draining: endpoints.filter(({ serving, terminating }) => serving && terminating).length,
    },
    endpointPorts: [
      ...new Set(
        own.flatMap(({ ports }) => ports.map((port) => `${port.name || '(unnamed)'} ${port.port}/${port.protocol}`)),
      ),
    ],
    endpointFamilies: [...new Set(own.flatMap((slice) => (slice.endpoints.length > 0 ? [slice.addressType] : [])))],
  }
}

/** Undefined `spec`: the proxy knows ports, and not the target ports that they were made of. */
function portsOf(service: Service, spec: JsonObject | undefined): ServiceFact['ports'] {
  const raw = Array.isArray(spec?.['ports']) ? spec['ports'].map(recordOf) : []
  return service.ports.map(({ name, port, protocol, nodePort }, i) => {
    const target = raw[i]?.['targetPort']
    const isGiven = typeof target === 'string' || typeof target === 'number'
    const targetPort = spec === undefined ? undefined : isGiven ? String(target) : String(port)
    return { name, port, protocol, targetPort, nodePort }
  })
}

function podsOf({ raw }: ReadObjects, namespace: string, selector: Readonly<Record<string, string>>): PodFact[] {
  const wanted = Object.entries(selector)
  return raw.pods
    .filter((json) => recordOf(json['metadata'])['namespace'] === namespace)
    .filter((json) => {
      const labels = recordOf(recordOf(json['metadata'])['labels'])
      return wanted.every(([key, value]) => labels[key] === value)
    })
    .map(podFact)
}

function podFact(json: JsonObject): PodFact {
  const status = recordOf(json['status'])
  const conditions = Array.isArray(status['conditions']) ? status['conditions'].map(recordOf) : []
  const ready = conditions.find(({ type }) => type === 'Ready')
  const containers = recordOf(json['spec'])['containers']
  const ports = (Array.isArray(containers) ? containers.map(recordOf) : []).flatMap(({ ports: list }) =>
    Array.isArray(list) ? list.map(recordOf) : [],
  )
  const why = [ready?.['reason'], ready?.['message']].filter((each) => typeof each === 'string' && each !== '')
  return {
    name: String(recordOf(json['metadata'])['name']),
    phase: typeof status['phase'] === 'string' ? status['phase'] : 'in no phase',
    ready: ready?.['status'] === 'True',
    why: why.join(': '),
    portNames: ports.flatMap(({ name }) => (typeof name === 'string' ? [name] : [])),
  }
}

function keyOf(json: JsonObject): string {
  const { namespace, name } = recordOf(json['metadata'])
  return `${String(namespace)}/${String(name)}`
}

function recordOf(value: unknown): JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonObject) : {}
}

function stringsOf(value: unknown): Record<string, string> | undefined {
  const entries = Object.entries(recordOf(value)).filter(
    (pair): pair is [string, string] => typeof pair[1] === 'string',
  )
  return entries.length === 0 ? undefined : Object.fromEntries(entries)
}
