// The shapes of objects in files. No API server fills in absent fields: addresses and node ports must be given.

import { ipFamily, parseCidr } from '../../lib/ip.ts'
import { SERVICE_NAME_LABEL } from '../objects/endpoint-slice.ts'
import { isJsonObject, type JsonObject } from '../../lib/json.ts'
import { all, anything, boolean, fields, integer, listOf, oneOf, text, textThat, wrong } from './shape.ts'
import type { Complaint, Shape } from './shape.ts'

const ip = textThat((value) => ipFamily(value) !== undefined, 'an IP address')
const clusterIp = textThat(
  (value) => value === 'None' || value === '' || ipFamily(value) !== undefined,
  'an IP address or None',
)
const cidr = textThat((value) => parseCidr(value.trim()) !== undefined, 'a range such as 10.0.0.0/8')
const name = textThat(
  (value) => /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/.test(value),
  "lower case letters, digits, '-' and '.'",
)
const port = integer(1, 65535)
const protocol = oneOf('TCP', 'UDP', 'SCTP')
const policy = oneOf('Cluster', 'Local')
const texts = listOf(text)

const metadata = fields({
  name,
  namespace: name,
  labels: anything,
  annotations: anything,
  uid: text,
  resourceVersion: text,
  creationTimestamp: text,
  deletionTimestamp: text,
  generation: anything,
  generateName: text,
  managedFields: anything,
  ownerReferences: anything,
  finalizers: anything,
  selfLink: text,
  deletionGracePeriodSeconds: anything,
})

/** The fields of every object, and `own`. */
function object(own: Readonly<Record<string, Shape>>): Shape {
  const known = fields({ apiVersion: text, kind: text, metadata, ...own })
  return all(known, (value) => required(value, ['metadata', 'name']))
}

const servicePort = fields({
  name,
  protocol,
  port,
  targetPort: anything,
  nodePort: integer(0, 65535),
  appProtocol: text,
})

export const serviceShape: Shape = all(
  object({
    spec: fields({
      type: oneOf('ClusterIP', 'NodePort', 'LoadBalancer', 'ExternalName'),
      clusterIP: clusterIp,
      clusterIPs: listOf(clusterIp),
      externalIPs: listOf(ip),
      ports: listOf(servicePort),
      sessionAffinity: oneOf('None', 'ClientIP'),
      sessionAffinityConfig: fields({ clientIP: fields({ timeoutSeconds: integer(1, 86_400) }) }),
      externalTrafficPolicy: policy,
      internalTrafficPolicy: policy,
      loadBalancerSourceRanges: listOf(cidr),
      healthCheckNodePort: integer(0, 65535),
      selector: anything,
      ipFamilies: listOf(oneOf('IPv4', 'IPv6')),
      ipFamilyPolicy: text,
      externalName: text,
      loadBalancerIP: text,
      loadBalancerClass: text,
      allocateLoadBalancerNodePorts: boolean,
      publishNotReadyAddresses: boolean,
      trafficDistribution: text,
    }),
    status: fields({
      loadBalancer: fields({
        ingress: listOf(fields({ ip, hostname: text, ipMode: oneOf('VIP', 'Proxy'), ports: anything })),
      }),
      conditions: anything,
    }),
  }),
  completeService,
)

/** The fields that an API server would have filled in, or required. */
function completeService(value: unknown): Complaint[] {
  const spec = objectAt(value, 'spec')
  if (spec['type'] === 'ExternalName') return []
  const given = [spec['clusterIP'], ...listAt(spec, 'clusterIPs')].filter((one) => one !== undefined && one !== '')
  if (given.length === 0) {
    const message = "required: there is no API server to allocate one. Give the address that clients use, or 'None'"
    return [wrong(['spec', 'clusterIP'], message)]
  }
  if (given.includes('None')) return []
  const ports = listAt(spec, 'ports').filter(isJsonObject)
  if (ports.length === 0) return [wrong(['spec', 'ports'], 'required: at least one port')]
  const path = (index: number, field: string) => ['spec', 'ports', index, field]
  return ports.flatMap((one, index) => [
    ...(one['port'] === undefined ? [wrong(path(index, 'port'), 'required')] : []),
    ...(ports.length > 1 && one['name'] === undefined
      ? [wrong(path(index, 'name'), 'required where there are several ports')]
      : []),
    ...(spec['type'] === 'NodePort' && !one['nodePort']
      ? [wrong(path(index, 'nodePort'), 'required: there is no API server to allocate one')]
      : []),
  ])
}

const endpointPort = fields({ name: text, protocol, port, appProtocol: text })

export const endpointSliceShape: Shape = all(
  object({
    addressType: oneOf('IPv4', 'IPv6', 'FQDN'),
    endpoints: listOf(
      fields({
        addresses: texts,
        conditions: fields({ ready: boolean, serving: boolean, terminating: boolean }),
        hostname: text,
        targetRef: anything,
        nodeName: text,
        zone: text,
        hints: anything,
        deprecatedTopology: anything,
      }),
    ),
    ports: listOf(endpointPort),
  }),
  completeSlice,
)

function completeSlice(value: unknown): Complaint[] {
  if (!isJsonObject(value)) return []
  const label = objectAt(objectAt(value, 'metadata'), 'labels')[SERVICE_NAME_LABEL]
  if (typeof label !== 'string' || label === '') {
    return [wrong(['metadata', 'labels', SERVICE_NAME_LABEL], 'required: the name of the Service')]
  }
  const addressType = value['addressType']
  if (addressType === undefined) return [wrong(['addressType'], 'required: IPv4 or IPv6')]
  const family = addressType === 'IPv4' ? 4 : addressType === 'IPv6' ? 6 : undefined
  return listAt(value, 'endpoints').flatMap((endpoint, index) => {
    const addresses = listAt(endpoint, 'addresses')
    const path = ['endpoints', index, 'addresses']
    if (addresses.length === 0) return [wrong(path, 'required: at least one address')]
    return addresses.flatMap((address, nth) =>
      family === undefined || ipFamily(String(address)) === family
        ? []
        : [wrong([...path, nth], `must be an IPv${family} address, not ${JSON.stringify(address)}`)],
    )
  })
}

const endpointAddress = all(fields({ ip, hostname: text, nodeName: text, targetRef: anything }), (value, path) =>
  objectOf(value)['ip'] === undefined ? [wrong([...path, 'ip'], 'required')] : [],
)

export const endpointsShape: Shape = object({
  subsets: listOf(
    fields({
      addresses: listOf(endpointAddress),
      notReadyAddresses: listOf(endpointAddress),
      ports: listOf(endpointPort),
    }),
  ),
})

/** A Node has many fields, and few of them are read: only those are checked. */
export const nodeShape: Shape = all(object({ spec: anything, status: anything }), (value) => {
  const status = objectAt(value, 'status')
  const spec = objectAt(value, 'spec')
  const addresses = listOf(fields({ type: text, address: text }))
  return [
    ...(status['addresses'] === undefined ? [] : addresses(status['addresses'], ['status', 'addresses'])),
    ...(spec['podCIDRs'] === undefined ? [] : listOf(cidr)(spec['podCIDRs'], ['spec', 'podCIDRs'])),
  ]
})

export const serviceCidrShape: Shape = object({ spec: fields({ cidrs: listOf(cidr) }), status: anything })

function required(value: unknown, path: readonly string[]): Complaint[] {
  const found = path.reduce<unknown>((part, step) => objectOf(part)[step], value)
  return found === undefined || found === null || found === '' ? [wrong(path, 'required')] : []
}

function objectOf(value: unknown): JsonObject {
  return isJsonObject(value) ? value : {}
}

function objectAt(value: unknown, field: string): JsonObject {
  return objectOf(objectOf(value)[field])
}

function listAt(value: unknown, field: string): readonly unknown[] {
  const list = objectOf(value)[field]
  return Array.isArray(list) ? list : []
}
