// A Service as one IP family sees it: addresses parsed and filtered, policies and defaults resolved.

import type { NamespacedName, Protocol, Service, ServicePort } from '../kube/types.ts'
import { growList } from '../lib/grow-list.ts'
import { compareCidrs, formatCidr, parseCidr } from '../lib/ip.ts'
import type { Cidr, Family } from '../lib/ip.ts'
import { compareBytes, isOfFamily, parseAddress } from './address.ts'
import type { Address } from './address.ts'
import { type Balance, balanceHasNoEffect } from './balance.ts'
import { readAnnotations, sameAnnotations, type ServiceAnnotations } from './annotations.ts'
import { Summary } from './summary.ts'
import { isLabel, isPortName, isPortNumber, isProtocol, quote } from './valid.ts'
import type { ServicePortName } from './types.ts'
import { withoutLocalHasNoEffect } from './without-local.ts'

/** What all ports of a service share. Addresses are of the family, canonical, sorted, without duplicates. */
export interface ServiceInfo {
  readonly key: NamespacedName
  readonly namespace: string
  readonly name: string
  readonly createdMs: number
  readonly clusterIP: string
  readonly loadBalancerIPs: readonly string[]
  readonly externalIPs: readonly string[]
  /** The sources that may connect to the load-balancer IPs; empty: all. */
  readonly sourceRanges: readonly Cidr[]
  /** 0: none. */
  readonly healthCheckNodePort: number
  readonly externalPolicyLocal: boolean
  readonly internalPolicyLocal: boolean
  readonly affinitySeconds: number | undefined
  readonly annotations: ServiceAnnotations
  readonly ports: readonly ServicePortInfo[]
}

export interface ServicePortInfo {
  readonly service: ServiceInfo
  readonly name: ServicePortName
  /** '' when unnamed. */
  readonly portName: string
  readonly protocol: Protocol
  readonly port: number
  /** 0: none. */
  readonly nodePort: number
}

export interface ParseServiceContext {
  readonly family: Family
  /** Feature gate AllowServiceExternalIPs. */
  readonly allowExternalIPs: boolean
  /** Messages about what is left out. */
  readonly problems: string[]
  /** The ways to choose that the mode has; absent: all. */
  readonly balances?: readonly Balance[] | undefined
  /** Messages about our annotations; absent: they are among the problems. */
  readonly annotationProblems?: string[]
}

/** Another proxy serves a service with this label, whatever its value. */
const PROXY_NAME_LABEL = 'service.kubernetes.io/service-proxy-name'

/** spec.sessionAffinityConfig.clientIP.timeoutSeconds when it is not given, and the longest that the API allows. */
const DEFAULT_AFFINITY_SECONDS = 10800
const LONGEST_AFFINITY_SECONDS = 86400

/** Shared by the many services that have nothing but a cluster IP. */
const NONE: readonly never[] = []

/** Reads a service. Undefined when this family does not serve it. */
export function parseService(
  service: Service,
  key: NamespacedName,
  context: ParseServiceContext,
): ServiceInfo | undefined {
  const { family, problems } = context
  if (whyNotServed(service) !== undefined) return undefined
  if (!isLabel(service.namespace) || !isLabel(service.name)) {
    problems.push('the name is not a valid object name; the service is ignored')
    return undefined
  }
  const clusterIP = parseIps(service.clusterIPs, 'spec.clusterIPs', context)[0]?.text
  if (clusterIP === undefined) return undefined

  const externalPolicyLocal = isExternallyAccessible(service) && service.externalTrafficPolicy === 'Local'
  const annotationProblems = context.annotationProblems ?? problems
  const annotations = readAnnotations(service.annotations, annotationProblems)
  if (annotations.withoutLocal !== undefined && !externalPolicyLocal)
    annotationProblems.push(withoutLocalHasNoEffect(service.externalTrafficPolicy))
  if (annotations.balance !== undefined && context.balances?.includes(annotations.balance) === false)
    annotationProblems.push(balanceHasNoEffect(annotations.balance, context.balances))
  const info: ServiceInfo & { ports: readonly ServicePortInfo[] } = {
    key,
    namespace: service.namespace,
    name: service.name,
    createdMs: Number.isFinite(service.createdMs) ? service.createdMs : 0,
    clusterIP,
    loadBalancerIPs: sortedIps(virtualIps(service), 'status.loadBalancer.ingress', context),
    externalIPs: context.allowExternalIPs ? sortedIps(service.externalIPs, 'spec.externalIPs', context) : NONE,
    sourceRanges: parseSourceRanges(service.loadBalancerSourceRanges, family, problems),
    healthCheckNodePort: healthCheckNodePort(service, externalPolicyLocal, problems),
    externalPolicyLocal,
    internalPolicyLocal: service.internalTrafficPolicy === 'Local',
    affinitySeconds: service.sessionAffinity === 'ClientIP' ? affinitySeconds(service, problems) : undefined,
    annotations,
    ports: NONE,
  }
  // The two refer to each other.
  info.ports = usablePorts(service.ports, problems).map((port) => portInfo(info, port))
  return info
}

function portInfo(service: ServiceInfo, { name, protocol, port, nodePort }: ServicePort): ServicePortInfo {
  return {
    service,
    // join() rather than a template: the result is one flat string, and it is kept.
    name: name === '' ? service.key : [service.key, name].join(':'),
    portName: name,
    protocol,
    port,
    nodePort: isPortNumber(nodePort) ? nodePort : 0,
  }
}

export function sameService(a: ServiceInfo | undefined, b: ServiceInfo | undefined): boolean {
  if (a === undefined || b === undefined) return a === b
  return (
    a.createdMs === b.createdMs &&
    a.clusterIP === b.clusterIP &&
    a.healthCheckNodePort === b.healthCheckNodePort &&
    a.externalPolicyLocal === b.externalPolicyLocal &&
    a.internalPolicyLocal === b.internalPolicyLocal &&
    a.affinitySeconds === b.affinitySeconds &&
    sameAnnotations(a.annotations, b.annotations) &&
    sameList(a.loadBalancerIPs, b.loadBalancerIPs, (x) => x) &&
    sameList(a.externalIPs, b.externalIPs, (x) => x) &&
    sameList(a.sourceRanges, b.sourceRanges, formatCidr) &&
    sameList(a.ports, b.ports, (p) => `${p.name} ${p.protocol} ${p.port} ${p.nodePort}`)
  )
}

/** Why no proxy, or another one, serves the service; undefined: this one does. */
export function whyNotServed(service: Service): WhyNotServed | undefined {
  const [primary] = service.clusterIPs
  if (service.type === 'ExternalName') return { kind: 'external name' }
  if (primary === 'None') return { kind: 'headless' }
  if (primary === undefined || primary === '') return { kind: 'no cluster IP' }
  const proxy = service.labels?.[PROXY_NAME_LABEL]
  return proxy === undefined ? undefined : { kind: 'another proxy', proxy }
}

export type WhyNotServed =
  | { readonly kind: 'external name' | 'headless' | 'no cluster IP' }
  /** Its label service.kubernetes.io/service-proxy-name. */
  | { readonly kind: 'another proxy'; readonly proxy: string }

function isExternallyAccessible(service: Service): boolean {
  return (
    service.type === 'LoadBalancer' ||
    service.type === 'NodePort' ||
    (service.type === 'ClusterIP' && service.externalIPs.length > 0)
  )
}

/** A load balancer of mode Proxy delivers to node ports or pods: the node must not capture its addresses. */
function virtualIps(service: Service): readonly string[] {
  if (service.ingress.length === 0) return NONE
  return service.ingress.filter(({ ip, ipMode }) => ip !== '' && ipMode === 'VIP').map(({ ip }) => ip)
}

function sortedIps(texts: readonly string[], field: string, context: ParseServiceContext): readonly string[] {
  if (texts.length === 0) return NONE
  const addresses = parseIps(texts, field, context).toSorted((a, b) => compareBytes(a.bytes, b.bytes))
  return addresses.map(({ text }) => text).filter((text, i, all) => text !== all[i - 1])
}

function parseIps(
  texts: readonly string[],
  field: string,
  { family, problems }: ParseServiceContext,
): readonly Address[] {
  let addresses: readonly Address[] = NONE
  const bad = new Summary()
  for (const text of texts) {
    const address = parseAddress(text)
    if (address !== undefined) {
      if (isOfFamily(address.bytes, family)) addresses = growList(addresses, address)
    } else if (text.trim() !== '') {
      addNotAnAddress(bad, field, text)
    }
  }
  bad.addTo(problems)
  return addresses
}

/** Not inside the loop: a closure there would allocate in each turn. */
function addNotAnAddress(bad: Summary, field: string, text: string): void {
  bad.add(() => `${field}: ${quote(text)} is not an IP address and is ignored`)
}

/** The API accepts white space. A range of all addresses is the same as no ranges. */
function parseSourceRanges(texts: readonly string[], family: Family, problems: string[]): readonly Cidr[] {
  if (texts.length === 0) return NONE
  const ranges = new Map<string, Cidr>()
  const bad = new Summary()
  for (const text of texts) {
    const trimmed = text.trim()
    const cidr = parseCidr(trimmed)
    if (cidr === undefined) {
      if (trimmed !== '') bad.add(() => `spec.loadBalancerSourceRanges: ${quote(text)} is not a CIDR and is ignored`)
    } else if (cidr.family === family) {
      if (cidr.prefix === 0) return NONE
      ranges.set(`${cidr.network}${cidr.prefix}`, cidr)
    }
  }
  bad.addTo(problems)
  return [...ranges.values()].sort(compareCidrs)
}

function healthCheckNodePort(service: Service, externalPolicyLocal: boolean, problems: string[]): number {
  if (service.type !== 'LoadBalancer' || !externalPolicyLocal) return 0
  if (isPortNumber(service.healthCheckNodePort)) return service.healthCheckNodePort
  problems.push('spec.healthCheckNodePort is missing although externalTrafficPolicy is Local')
  return 0
}

function affinitySeconds({ affinityTimeoutSeconds: seconds }: Service, problems: string[]): number {
  if (seconds === undefined) return DEFAULT_AFFINITY_SECONDS
  if (Number.isInteger(seconds) && seconds > 0 && seconds <= LONGEST_AFFINITY_SECONDS) return seconds
  problems.push(
    `sessionAffinityConfig.clientIP.timeoutSeconds: ${seconds} is not from 1 to ${LONGEST_AFFINITY_SECONDS}; ` +
      `${DEFAULT_AFFINITY_SECONDS} is used`,
  )
  return DEFAULT_AFFINITY_SECONDS
}

function usablePorts(ports: readonly ServicePort[], problems: string[]): readonly ServicePort[] {
  // Most services have one port.
  if (ports.length === 1 && refusalOf(ports[0]!) === undefined) return ports
  const names = new Set<string>()
  const bad = new Summary()
  const usable = ports.filter((port) => {
    const { name } = port
    const refusal = refusalOf(port)
    if (refusal !== undefined) bad.add(refusal)
    else if (names.has(name)) bad.add(() => `port name ${quote(name)} is there twice; the second is ignored`)
    else {
      names.add(name)
      return true
    }
    return false
  })
  bad.addTo(problems)
  return usable
}

/** Why the port is left out; undefined: it is not. */
function refusalOf({ name, port, protocol }: ServicePort): (() => string) | undefined {
  if (!isPortName(name)) return () => `port name ${quote(name)} is not valid; the port is ignored`
  if (!isPortNumber(port)) return () => `port ${quote(name)} has the invalid number ${port} and is ignored`
  if (!isProtocol(protocol)) return () => `port ${quote(name)} has an unknown protocol and is ignored`
  return undefined
}

function sameList<T>(a: readonly T[], b: readonly T[], textOf: (value: T) => string): boolean {
  return a.length === b.length && a.every((value, i) => textOf(value) === textOf(b[i] as T))
}
