// What a Service is given when it is written: addresses and ports. The decision is made before the service is stored;
// the addresses are booked once it is.

import { canonicalIp } from '../../../../../src/lib/ip.ts'
import { invalid, ApiError } from '../api-error.ts'
import { invalidValue } from '../fields/problem.ts'
import { ipAddresses } from '../resources/ip-address.ts'
import { isHeadless, needsClusterIP, needsHealthCheckNodePort, needsNodePort } from '../objects/service.ts'
import { keyOf } from '../objects/meta.ts'
import { sameJson } from '../json.ts'
import { settleFamilies } from './ip-families.ts'
import { validateClusterIps } from '../resources/service-ip-validation.ts'
import type { ClusterIps } from './cluster-ips.ts'
import type { FieldProblem } from '../fields/problem.ts'
import type { IPAddress } from '../objects/small.ts'
import type { NodePorts } from './node-ports.ts'
import type { Service } from '../objects/service.ts'
import type { WriteHook } from '../registry/write-hook.ts'

/** Makes and removes the objects that say which addresses are taken. */
export interface AddressBook {
  book(address: IPAddress): void
  release(name: string): void
}

export function serviceAllocator(ips: ClusterIps, ports: NodePorts, book: AddressBook): WriteHook<Service> {
  return {
    plan(next, current) {
      keepWhatWasGiven(next, current)
      alignClusterIps(next, current)
      refuse(next, validateClusterIps(next))
      refuse(next, settleFamilies(next, current, ips.families()))
      giveClusterIps(next, ips)
      giveNodePorts(next, ports)
      return () => settleBook(next, current, book)
    },
    deleted(service) {
      for (const ip of bookedIps(service)) book.release(ip)
    },
  }
}

function refuse(service: Service, problems: readonly FieldProblem[]): void {
  if (problems.length > 0) throw invalid(subjectOf(service), problems)
}

function subjectOf(service: Service) {
  return { group: '', resource: 'services', kind: 'Service', name: service.metadata.name }
}

/** A client that sends a service again as it was first written does not lose what it was given. */
function keepWhatWasGiven(next: Service, current: Service | undefined): void {
  if (current === undefined) return
  if (needsClusterIP(next) && needsClusterIP(current)) {
    if (current.spec.clusterIP !== undefined) next.spec.clusterIP ??= current.spec.clusterIP
    if (current.spec.clusterIPs !== undefined) next.spec.clusterIPs ??= [...current.spec.clusterIPs]
  }
  if (wantsNodePorts(next) && wantsNodePorts(current)) keepNodePorts(next, current)
  if (needsHealthCheckNodePort(next) && needsHealthCheckNodePort(current)) {
    if (current.spec.healthCheckNodePort !== undefined)
      next.spec.healthCheckNodePort ??= current.spec.healthCheckNodePort
  }
}

function keepNodePorts(next: Service, current: Service): void {
  const claimed = new Set((next.spec.ports ?? []).map(({ nodePort }) => nodePort))
  for (const port of next.spec.ports ?? []) {
    const before = current.spec.ports?.find(({ name }) => name === port.name)?.nodePort
    if (port.nodePort === undefined && before !== undefined && !claimed.has(before)) port.nodePort = before
  }
}

/** Old clients know clusterIP alone: what they do to it is done to clusterIPs. */
function alignClusterIps({ spec: next }: Service, current: Service | undefined): void {
  if (current === undefined) {
    if (next.clusterIP !== undefined) next.clusterIPs ??= [next.clusterIP]
    return
  }
  const sameList = sameJson(next.clusterIPs, current.spec.clusterIPs)
  if (next.clusterIP === current.spec.clusterIP || !sameList) return
  if (next.clusterIP === undefined) delete next.clusterIPs
  else next.clusterIPs = [next.clusterIP]
}

function giveClusterIps(service: Service, ips: ClusterIps): void {
  if (!needsClusterIP(service) || isHeadless(service)) return
  const { spec } = service
  const { namespace = '', name } = service.metadata
  const given = [...(spec.clusterIPs ?? [])]
  for (const [i, family] of (spec.ipFamilies ?? []).entries()) {
    const asked = given[i]
    if (asked === undefined) {
      const picked = ips.pick(family)
      if (picked === undefined) throw rangeIsFull(`failed to allocate a serviceIP for Service "${name}": range is full`)
      given[i] = picked
      continue
    }
    const problem = ips.problem(asked, { namespace, name })
    if (problem === undefined) continue
    refuse(service, [invalidValue('spec.clusterIPs', given, `failed to allocate IP ${asked}: ${problem}`)])
  }
  spec.clusterIPs = given
  if (given[0] !== undefined) spec.clusterIP = given[0]
}

function wantsNodePorts(service: Service): boolean {
  if (service.spec.type === 'LoadBalancer') return service.spec.allocateLoadBalancerNodePorts !== false
  return service.spec.type === 'NodePort'
}

function giveNodePorts(service: Service, nodePorts: NodePorts): void {
  const { spec } = service
  const key = keyOf(service)
  const taken = new Set<number>()
  const claim = (path: string, port: number): void => {
    const problem = nodePorts.problem(port, key)
    if (problem !== undefined) refuse(service, [invalidValue(path, port, problem)])
    taken.add(port)
  }
  if (needsNodePort(service)) {
    for (const [i, port] of (spec.ports ?? []).entries()) {
      if (port.nodePort !== undefined) claim(`spec.ports[${i}].nodePort`, port.nodePort)
    }
  }
  if (needsHealthCheckNodePort(service) && spec.healthCheckNodePort !== undefined) {
    claim('spec.healthCheckNodePort', spec.healthCheckNodePort)
  }
  if (wantsNodePorts(service)) {
    for (const port of spec.ports ?? []) port.nodePort ??= shared(service, port.port) ?? pickPort(nodePorts, taken)
  }
  if (needsHealthCheckNodePort(service)) spec.healthCheckNodePort ??= pickPort(nodePorts, taken)
}

/** The same port over TCP and UDP gets the same node port. */
function shared(service: Service, port: number): number | undefined {
  return service.spec.ports?.find((other) => other.port === port && other.nodePort !== undefined)?.nodePort
}

function pickPort(nodePorts: NodePorts, taken: Set<number>): number {
  const port = nodePorts.pick(taken)
  if (port === undefined) throw rangeIsFull('failed to allocate a nodePort: range is full')
  taken.add(port)
  return port
}

function rangeIsFull(message: string): ApiError {
  return new ApiError(500, 'InternalError', `Internal error occurred: ${message}`)
}

/** In the canonical form, in which an address has one name. A service may write it in another. */
function bookedIps(service: Service | undefined): readonly string[] {
  return service === undefined || isHeadless(service)
    ? []
    : (service.spec.clusterIPs ?? []).map((ip) => canonicalIp(ip) ?? ip)
}

function settleBook(next: Service, current: Service | undefined, book: AddressBook): void {
  const [before, after] = [bookedIps(current), bookedIps(next)]
  for (const ip of before) if (!after.includes(ip)) book.release(ip)
  for (const ip of after) if (!before.includes(ip)) book.book(addressFor(ip, next))
}

function addressFor(ip: string, { metadata }: Service): IPAddress {
  return {
    kind: ipAddresses.kind,
    apiVersion: 'networking.k8s.io/v1',
    metadata: {
      name: ip,
      labels: {
        'ipaddress.kubernetes.io/ip-family': ip.includes(':') ? 'IPv6' : 'IPv4',
        'ipaddress.kubernetes.io/managed-by': 'ipallocator.k8s.io',
      },
    },
    spec: { parentRef: { resource: 'services', namespace: metadata.namespace ?? '', name: metadata.name } },
  }
}
