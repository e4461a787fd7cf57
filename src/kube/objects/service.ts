// What is read from a Service (core/v1), from either encoding.

import { growList } from '../../lib/grow-list.ts'
import type { Decoded, Resource } from '../resource.ts'
import type { LoadBalancerIngress, Service, ServicePort } from '../types.ts'
import type { JsonObject, JsonReader } from '../encoding/json-reader.ts'
import type { ProtoReader } from '../encoding/proto-reader.ts'
import { keyOf, metaFromJson, partsFromProtobuf, type ObjectMeta } from './object-meta.ts'
import { parseProtocol } from './protocol.ts'

export const services: Resource<Service> = {
  name: 'services',
  kind: 'Service',
  path: '/api/v1/services',
  fromProtobuf: serviceFromProtobuf,
  fromJson: serviceFromJson,
}

/** spec and status while they are being read. Optional fields carry the API's own defaults. */
interface ServiceFields {
  type: string
  clusterIP: string
  clusterIPs: readonly string[]
  externalIPs: readonly string[]
  ports: readonly ServicePort[]
  sessionAffinity: string
  affinityTimeoutSeconds: number | undefined
  externalTrafficPolicy: string
  internalTrafficPolicy: string
  loadBalancerSourceRanges: readonly string[]
  healthCheckNodePort: number
  ingress: readonly LoadBalancerIngress[]
}

const NONE: readonly never[] = []

function emptyFields(): ServiceFields {
  return {
    type: '',
    clusterIP: '',
    clusterIPs: NONE,
    externalIPs: NONE,
    ports: NONE,
    sessionAffinity: '',
    affinityTimeoutSeconds: undefined,
    externalTrafficPolicy: '',
    internalTrafficPolicy: '',
    loadBalancerSourceRanges: NONE,
    healthCheckNodePort: 0,
    ingress: NONE,
  }
}

function finish(meta: ObjectMeta, fields: ServiceFields): Decoded<Service> {
  // Servers before 1.20 know the singular only.
  const clusterIPs = fields.clusterIPs.length === 0 && fields.clusterIP !== '' ? [fields.clusterIP] : fields.clusterIPs
  const object: Service = {
    namespace: meta.namespace,
    name: meta.name,
    type: fields.type || 'ClusterIP',
    clusterIPs: fitted(clusterIPs),
    externalIPs: fitted(fields.externalIPs),
    ports: fitted(fields.ports),
    sessionAffinity: fields.sessionAffinity || 'None',
    affinityTimeoutSeconds: fields.affinityTimeoutSeconds,
    externalTrafficPolicy: fields.externalTrafficPolicy || 'Cluster',
    internalTrafficPolicy: fields.internalTrafficPolicy || 'Cluster',
    loadBalancerSourceRanges: fitted(fields.loadBalancerSourceRanges),
    healthCheckNodePort: fields.healthCheckNodePort,
    ingress: fitted(fields.ingress),
    labels: meta.labels,
    annotations: meta.annotations,
    createdMs: meta.createdMs,
  }
  return { key: keyOf(meta), resourceVersion: meta.resourceVersion, object }
}

/** A list that takes as much memory as it has elements: push() reserves room for more. Most lists here have one, or none. */
function fitted<T>(list: readonly T[]): readonly T[] {
  return list.length === 0 ? NONE : list.slice()
}

function keepKey(key: string): boolean {
  return key.startsWith('service.')
}

function serviceFromProtobuf(reader: ProtoReader, end: number): Decoded<Service> {
  const fields = emptyFields()
  return finish(partsFromProtobuf(reader, end, { fields, keepKey, decodeSpec, decodeStatus }), fields)
}

function decodeSpec(reader: ProtoReader, fields: ServiceFields): void {
  for (const end = reader.enter(); reader.pos < end;) {
    switch (reader.field(end)) {
      case 1:
        fields.ports = withPort(fields.ports, reader)
        break
      case 3:
        fields.clusterIP = reader.string()
        break
      case 4:
        fields.type = reader.pooled()
        break
      case 5:
        fields.externalIPs = growList(fields.externalIPs, reader.string())
        break
      case 7:
        fields.sessionAffinity = reader.pooled()
        break
      case 9:
        fields.loadBalancerSourceRanges = growList(fields.loadBalancerSourceRanges, reader.pooled())
        break
      case 11:
        fields.externalTrafficPolicy = reader.pooled()
        break
      case 12:
        fields.healthCheckNodePort = reader.int()
        break
      case 14:
        fields.affinityTimeoutSeconds = decodeAffinityTimeout(reader)
        break
      case 18:
        fields.clusterIPs = growList(fields.clusterIPs, reader.string())
        break
      case 22:
        fields.internalTrafficPolicy = reader.pooled()
        break
      default:
        reader.skip(end)
    }
  }
}

function withPort(ports: ServiceFields['ports'], reader: ProtoReader): ServiceFields['ports'] {
  let name = ''
  let protocolName = ''
  let port = 0
  let nodePort = 0
  for (const end = reader.enter(); reader.pos < end;) {
    switch (reader.field(end)) {
      case 1:
        name = reader.pooled()
        break
      case 2:
        protocolName = reader.pooled()
        break
      case 3:
        port = reader.int()
        break
      case 5:
        nodePort = reader.int()
        break
      default:
        reader.skip(end)
    }
  }
  const protocol = parseProtocol(protocolName)
  return protocol === undefined ? ports : growList(ports, { name, protocol, port, nodePort })
}

/** SessionAffinityConfig.clientIP.timeoutSeconds */
function decodeAffinityTimeout(reader: ProtoReader): number | undefined {
  let seconds: number | undefined
  for (const end = reader.enter(); reader.pos < end;) {
    if (reader.field(end) !== 1) {
      reader.skip(end)
      continue
    }
    for (const clientEnd = reader.enter(); reader.pos < clientEnd;) {
      if (reader.field(clientEnd) === 1) seconds = reader.int()
      else reader.skip(clientEnd)
    }
  }
  return seconds
}

/** ServiceStatus.loadBalancer.ingress */
function decodeStatus(reader: ProtoReader, fields: ServiceFields): void {
  for (const end = reader.enter(); reader.pos < end;) {
    if (reader.field(end) !== 1) {
      reader.skip(end)
      continue
    }
    for (const balancerEnd = reader.enter(); reader.pos < balancerEnd;) {
      if (reader.field(balancerEnd) === 1) fields.ingress = withIngress(fields.ingress, reader)
      else reader.skip(balancerEnd)
    }
  }
}

function withIngress(ingress: ServiceFields['ingress'], reader: ProtoReader): ServiceFields['ingress'] {
  let ip = ''
  let ipMode = ''
  for (const end = reader.enter(); reader.pos < end;) {
    switch (reader.field(end)) {
      case 1:
        ip = reader.string()
        break
      case 3:
        ipMode = reader.pooled()
        break
      default:
        reader.skip(end)
    }
  }
  return withIngressOf(ingress, ip, ipMode)
}

/** An ingress that has a host name only is nothing for a proxy. */
function withIngressOf(ingress: ServiceFields['ingress'], ip: string, ipMode: string): ServiceFields['ingress'] {
  return ip === '' ? ingress : growList(ingress, { ip, ipMode: ipMode || 'VIP' })
}

function serviceFromJson(json: JsonObject, reader: JsonReader): Decoded<Service> {
  const spec = reader.object(json['spec'])
  const status = reader.object(json['status'])
  const clientIP = reader.object(reader.object(spec['sessionAffinityConfig'])['clientIP'])
  const timeout = clientIP['timeoutSeconds']
  const fields: ServiceFields = {
    type: reader.pooled(spec['type']),
    clusterIP: reader.string(spec['clusterIP']),
    clusterIPs: reader.strings(spec['clusterIPs']),
    externalIPs: reader.strings(spec['externalIPs']),
    ports: portsFromJson(spec['ports'], reader),
    sessionAffinity: reader.pooled(spec['sessionAffinity']),
    affinityTimeoutSeconds: typeof timeout === 'number' ? reader.int(timeout) : undefined,
    externalTrafficPolicy: reader.pooled(spec['externalTrafficPolicy']),
    internalTrafficPolicy: reader.pooled(spec['internalTrafficPolicy']),
    loadBalancerSourceRanges: reader.strings(spec['loadBalancerSourceRanges']),
    healthCheckNodePort: reader.int(spec['healthCheckNodePort']),
    ingress: ingressFromJson(reader.object(status['loadBalancer'])['ingress'], reader),
  }
  return finish(metaFromJson(json, reader, keepKey), fields)
}

function portsFromJson(value: unknown, reader: JsonReader): ServicePort[] {
  const ports: ServicePort[] = []
  for (const json of reader.objects(value)) {
    const protocol = parseProtocol(reader.pooled(json['protocol']))
    if (protocol === undefined) continue
    const name = reader.pooled(json['name'])
    ports.push({ name, protocol, port: reader.int(json['port']), nodePort: reader.int(json['nodePort']) })
  }
  return ports
}

function ingressFromJson(value: unknown, reader: JsonReader): ServiceFields['ingress'] {
  let ingress: ServiceFields['ingress'] = NONE
  for (const json of reader.objects(value)) {
    ingress = withIngressOf(ingress, reader.string(json['ip']), reader.pooled(json['ipMode']))
  }
  return ingress
}
