// What a name of the cluster means, by the rules of Kubernetes for DNS: services, ports and endpoints of headless services
// have names under svc.cluster.local. There is no way out: other names do not exist. Pure.

import { clusterDomain } from '../commands/pod-files.ts'
import { ipFamily } from '../../../../src/lib/ip.ts'
import { isHeadless, type Service } from '../apiserver/objects/service.ts'
import {
  parseReverseName,
  recordTypes,
  responseCodes,
  type Answer,
  type DnsRecord,
  type RecordData,
} from './dns-message.ts'
import type { EndpointSlice } from '../apiserver/objects/endpoints.ts'

export interface NamedCluster {
  hasNamespace(namespace: string): boolean
  service(namespace: string, name: string): Service | undefined
  slices(namespace: string, service: string): readonly EndpointSlice[]
  serviceAt(address: string): Service | undefined
  slicesWith(address: string): readonly EndpointSlice[]
}

interface Endpoint {
  readonly address: string
  /** Its name under that of the service. */
  readonly label: string
  readonly ports: readonly { readonly name: string; readonly protocol: string; readonly port: number }[]
}

type Found = { readonly answers: readonly DnsRecord[]; readonly additional?: readonly DnsRecord[] }

const zone = clusterDomain
const schemaVersion = '1.1.0'

export function answerQuestion(cluster: NamedCluster, name: string, type: number): Answer {
  const found = find(cluster, name)
  const authority = (): DnsRecord[] => [{ name: zone, data: { type: 'SOA', zone } }]
  if (found === undefined) {
    return { code: responseCodes.noSuchName, answers: [], authority: authority(), additional: [] }
  }
  const fits = ({ data }: DnsRecord): boolean =>
    recordTypes[data.type] === type || type === recordTypes.ANY || data.type === 'CNAME'
  const answers = found.answers.filter(fits)
  const additional = type === recordTypes.SRV ? (found.additional ?? []) : []
  return { code: responseCodes.ok, answers, authority: answers.length === 0 ? authority() : [], additional }
}

/** All records of a name; undefined when there is no such name. */
function find(cluster: NamedCluster, name: string): Found | undefined {
  const reverse = parseReverseName(name)
  if (reverse !== undefined) return findReverse(cluster, name, reverse)
  if (name === zone || name === `svc.${zone}`) return { answers: [] }
  if (name === `dns-version.${zone}`) return { answers: [{ name, data: { type: 'TXT', text: schemaVersion } }] }
  if (!name.endsWith(`.svc.${zone}`)) return undefined
  const labels = name.slice(0, -`.svc.${zone}`.length).split('.')
  const [namespace = '', serviceName, ...rest] = labels.reverse()
  if (serviceName === undefined) return cluster.hasNamespace(namespace) ? { answers: [] } : undefined
  const service = cluster.service(namespace, serviceName)
  return service === undefined ? undefined : findInService(cluster, service, name, rest.reverse())
}

function findInService(
  cluster: NamedCluster,
  service: Service,
  name: string,
  labels: readonly string[],
): Found | undefined {
  if (service.spec.type === 'ExternalName') {
    const target = service.spec.externalName ?? ''
    return labels.length === 0 ? { answers: [{ name, data: { type: 'CNAME', target } }] } : undefined
  }
  const endpoints = isHeadless(service) ? endpointsOf(cluster, service) : undefined
  if (labels.length === 0) {
    const addresses = endpoints?.map(({ address }) => address) ?? service.spec.clusterIPs ?? []
    const ports = findPorts(service, endpoints, name)
    return { answers: [...addressRecords(name, addresses), ...ports.answers], additional: ports.additional }
  }
  const [first = '', second] = labels
  if (labels.length === 2 && first.startsWith('_') && second !== undefined && /^_(tcp|udp|sctp)$/.test(second)) {
    const found = findPorts(service, endpoints, name, { name: first.slice(1), protocol: second.slice(1) })
    return found.answers.length === 0 ? undefined : found
  }
  if (labels.length !== 1 || endpoints === undefined) return undefined
  const addresses = endpoints.filter(({ label }) => label === first).map(({ address }) => address)
  return addresses.length === 0 ? undefined : { answers: addressRecords(name, addresses) }
}

/** Where a port is, or each of them: at the service, or at every endpoint of a headless one. */
function findPorts(
  service: Service,
  endpoints: readonly Endpoint[] | undefined,
  name: string,
  requested?: { readonly name: string; readonly protocol: string },
): { answers: DnsRecord[]; additional: DnsRecord[] } {
  const isRequested = (port: { readonly name?: string; readonly protocol?: string }): boolean =>
    requested === undefined ||
    (port.name === requested.name && (port.protocol ?? 'TCP').toLowerCase() === requested.protocol)
  const base = nameOf(service)
  const record = (port: number, target: string): DnsRecord => ({ name, data: { type: 'SRV', port, target } })
  if (endpoints === undefined) {
    const answers = (service.spec.ports ?? []).filter(isRequested).map(({ port }) => record(port, base))
    return { answers, additional: addressRecords(base, service.spec.clusterIPs ?? []) }
  }
  const having = endpoints.filter(({ ports }) => ports.some(isRequested))
  return {
    answers: having.flatMap(({ label, ports }) =>
      ports.filter(isRequested).map(({ port }) => record(port, `${label}.${base}`)),
    ),
    additional: having.flatMap(({ label, address }) => addressRecords(`${label}.${base}`, [address])),
  }
}

function findReverse(cluster: NamedCluster, name: string, address: string): Found | undefined {
  const pointer = (target: string): Found => ({ answers: [{ name, data: { type: 'PTR', target } }] })
  const service = cluster.serviceAt(address)
  if (service !== undefined) return pointer(nameOf(service))
  for (const slice of cluster.slicesWith(address)) {
    const owner = cluster.service(
      slice.metadata.namespace ?? '',
      slice.metadata.labels?.['kubernetes.io/service-name'] ?? '',
    )
    if (owner === undefined || !isHeadless(owner)) continue
    const endpoint = endpointsOf(cluster, owner).find((one) => one.address === address)
    if (endpoint !== undefined) return pointer(`${endpoint.label}.${nameOf(owner)}`)
  }
  return undefined
}

function endpointsOf(cluster: NamedCluster, { metadata }: Service): Endpoint[] {
  return cluster.slices(metadata.namespace ?? '', metadata.name).flatMap(({ endpoints, ports }) =>
    (endpoints ?? [])
      .filter(({ conditions }) => conditions.ready !== false)
      .flatMap(({ addresses, hostname }) =>
        addresses.map((address) => ({
          address,
          label: hostname ?? address.replace(/[.:]/g, '-'),
          ports: (ports ?? []).map(({ name = '', protocol = 'TCP', port = 0 }) => ({ name, protocol, port })),
        })),
      ),
  )
}

function nameOf({ metadata }: Service): string {
  return `${metadata.name}.${metadata.namespace}.svc.${zone}`
}

function addressRecords(name: string, addresses: readonly string[]): DnsRecord[] {
  return addresses.map((address) => {
    const data: RecordData = { type: ipFamily(address) === 6 ? 'AAAA' : 'A', address }
    return { name, data }
  })
}
