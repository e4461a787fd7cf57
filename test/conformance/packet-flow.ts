// The vocabulary of the packet-flow table.
//
// A row says what is in the cluster, how the proxy is set, and what then happens to packets: from whom, to where, and
// the outcome. It is data, so that more than one reader can run it: one walks the planned state, one sends real packets
// in network namespaces, for every mode. Addresses are the fixed ones of test/support/addresses.ts.

import type { Family } from '../../src/lib/ip.ts'
import type { Protocol } from '../../src/kube/types.ts'
import type { ModeName } from './modes.ts'
import type { ApiObject, ApiService } from '../support/builders.ts'
import type { PodName } from '../support/addresses.ts'
import { external, node, pods } from '../support/addresses.ts'

/** How the proxy is set, in the words of its configuration. What is absent is as in defaultSettings. */
export interface ProxySettings {
  readonly clusterCIDR?: string
  readonly detectLocalMode?: 'ClusterCIDR' | 'NodeCIDR' | 'BridgeInterface' | 'InterfaceNamePrefix'
  readonly podBridgeInterface?: string
  readonly podInterfaceNamePrefix?: string
  readonly masqueradeAll?: boolean
  /** Absent: not given, so each mode has its own default. */
  readonly nodePortAddresses?: readonly string[]
  readonly answerPing?: true
  /** The feature gate KubeProxyNFTablesLocalhostNodePorts. */
  readonly localhostNodePorts?: true
}

/** The client that opens the connection. */
export type Source = 'localPod' | 'otherLocalPod' | 'remotePod' | 'node' | 'external'

/** Where each source sends from, and through which interface it reaches the node under test (undefined: the node itself). */
export const sources: Readonly<Record<Source, { ip: Readonly<Record<Family, string>>; iif: string | undefined }>> = {
  localPod: { ip: pods.localA.ip, iif: node.bridge },
  otherLocalPod: { ip: pods.localB.ip, iif: node.bridge },
  remotePod: { ip: pods.remoteA.ip, iif: 'eth0' },
  node: { ip: node.ip, iif: undefined },
  external: { ip: external.ip, iif: 'eth0' },
}

export interface Destination {
  readonly address: string
  readonly port: number
  /** ICMP: a ping, with 0 for its port. */
  readonly protocol: Protocol | 'ICMP'
}

/** The server that answers: a pod or the node itself (an endpoint on the host network), on a port. */
export interface Answerer {
  readonly host: PodName | 'node'
  readonly port: number
}

export type Outcome =
  | {
      readonly kind: 'to'
      /** Each of these is chosen now and then, and no other ever. With `sticky`, a client sees only one of them. */
      readonly backends: readonly Answerer[]
      /** Whose address the backend sees: the client's own, or one of the node's (masqueraded). */
      readonly seenAs: 'client' | 'node'
      /** A client that came once comes to the same backend again. */
      readonly sticky: boolean
      /** One that is slow, as the busy endpoints of a test may be, gets few connections: it may be missed. */
      readonly byLoad?: true
    }
  /** Refused at once. */
  | { readonly kind: 'reject' }
  /** No answer at all. */
  | { readonly kind: 'drop' }
  /** The proxy has nothing to say: what happens is what would happen without it. */
  | { readonly kind: 'untouched' }

export interface Flow {
  readonly from: Source
  readonly to: Destination
  readonly outcome: Outcome
  /** That many clients, each with an address of its own (crowdIp 1..n); only from 'external'. Absent: the source's own address. */
  readonly clients?: number
}

/** A change, and what holds after it. */
export interface Step {
  /** What changes, as the reader of a failure wants to see it. */
  readonly when: string
  /** Created, or replaced when an object of that kind and name exists. */
  readonly put?: readonly ApiObject[]
  readonly remove?: readonly ApiObject[]
  /** The clients are silent for this long before the flows are tried. */
  readonly idleSeconds?: number
  readonly flows: readonly Flow[]
}

export interface PacketFlowCase {
  /** A sentence: what it is about, a colon, what holds. Unique in the table. */
  readonly name: string
  readonly settings: ProxySettings
  /** Apart from what anEmptyCluster() holds. Cluster IPs, node ports and names are not shared with any other row. */
  readonly objects: readonly ApiObject[]
  readonly flows: readonly Flow[]
  /** In order, after `flows`. */
  readonly steps: readonly Step[]
  /** Only these modes promise it; absent: all. */
  readonly modes?: readonly ModeName[]
}

/** A flow of a row. */
export function flow(from: Source, to: Destination, outcome: Outcome): Flow {
  return { from, to, outcome }
}

/** Answered by one of the backends, which sees the client's own address. */
export function reaches(...backends: readonly (PodName | 'node' | Answerer)[]): Outcome & { kind: 'to' } {
  return { kind: 'to', backends: backends.map(answerer), seenAs: 'client', sticky: false }
}

/** Answered by one of the backends, which sees an address of the node. */
export function reachesMasqueraded(...backends: readonly (PodName | 'node' | Answerer)[]): Outcome & { kind: 'to' } {
  return { ...reaches(...backends), seenAs: 'node' }
}

/** The same, and the busy ones of them get few connections. */
export function byLoad(outcome: Outcome & { kind: 'to' }): Outcome & { kind: 'to' } {
  return { ...outcome, byLoad: true }
}

/** The same, and a client always comes to the backend that it came to first. */
export function stickily(outcome: Outcome & { kind: 'to' }): Outcome {
  return { ...outcome, sticky: true }
}

export const isRejected: Outcome = { kind: 'reject' }
export const isDropped: Outcome = { kind: 'drop' }
export const isUntouched: Outcome = { kind: 'untouched' }

/** A host that answers on another port than 8080. */
export function on(host: PodName | 'node', port: number): Answerer {
  return { host, port }
}

/** The cluster IP of a service, by its first port or the one named. */
export function clusterIp(service: ApiService, options: { family?: Family; port?: string } = {}): Destination {
  const address = service.spec.clusterIPs.find(
    (ip) => options.family === undefined || ip.includes(':') === (options.family === 6),
  )
  if (address === undefined)
    throw new Error(`Service ${service.metadata.name} has no cluster IP of family ${options.family}`)
  return { address, ...portOf(service, options.port) }
}

/** An external or load-balancer IP of a service. */
export function serviceIp(service: ApiService, address: string, portName?: string): Destination {
  return { address, ...portOf(service, portName) }
}

/** The node port of a service on an address of the node. */
export function nodePort(service: ApiService, address: string, portName?: string): Destination {
  const port = findPort(service, portName)
  if (port.nodePort === undefined) throw new Error(`Service ${service.metadata.name} has no node port`)
  return { address, port: port.nodePort, protocol: port.protocol }
}

/** A ping of the address. */
export function ping({ address }: Destination): Destination {
  return { address, port: 0, protocol: 'ICMP' }
}

/** The same address and protocol, another port. */
export function atPort(destination: Destination, port: number): Destination {
  return { ...destination, port }
}

/** The settings of a row with the defaults filled in: two pod ranges, detected by the cluster CIDR. */
export function effectiveSettings(settings: ProxySettings): ProxySettings & { clusterCIDR: string } {
  return { clusterCIDR: '10.1.0.0/16,fd01::/48', detectLocalMode: 'ClusterCIDR', ...settings }
}

function portOf(service: ApiService, name: string | undefined): { port: number; protocol: Protocol } {
  const { port, protocol } = findPort(service, name)
  return { port, protocol }
}

function findPort(service: ApiService, name: string | undefined): ApiService['spec']['ports'][number] {
  const port = service.spec.ports.find((p) => name === undefined || p.name === name)
  if (port === undefined) throw new Error(`Service ${service.metadata.name} has no port ${name ?? ''}`)
  return port
}

function answerer(who: PodName | 'node' | Answerer): Answerer {
  return typeof who === 'string' ? { host: who, port: 8080 } : who
}
