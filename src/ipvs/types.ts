// IPVS state as data: virtual servers, and the destinations that each of them spreads its connections over.

import type { Family } from '../lib/ip.ts'

export type Transport = 'TCP' | 'UDP' | 'SCTP'

/** What makes a virtual server: where it takes connections. */
export interface ServerId {
  readonly family: Family
  readonly protocol: Transport
  /** Canonical text. */
  readonly address: string
  readonly port: number
}

export interface VirtualServer extends ServerId {
  /** The kernel's name: `rr`, `wlc`. */
  readonly scheduler: string
  /** What the flags mean depends on the scheduler. See SCHEDULER_FLAGS. */
  readonly schedulerFlags: number
  /** How long a client stays with its destination after its last connection; undefined: it does not. */
  readonly persistenceSeconds: number | undefined
}

export interface DestinationId {
  readonly address: string
  readonly port: number
}

export interface Destination extends DestinationId {
  /** The share of new connections that it gets; 0: none, and those that it has go on. */
  readonly weight: number
}

/** A virtual server with what it spreads over. */
export interface PlannedServer {
  readonly server: VirtualServer
  /** Without destinations, the virtual server is there only while one that it had before still has connections. */
  readonly destinations: readonly Destination[]
}

/** A destination as it is in the kernel. */
export interface DestinationState extends Destination {
  /** Whether it forwards by NAT, as all of ours do. */
  readonly isNat: boolean
  /** Established connections. */
  readonly activeConnections: number
  /** All others: about to begin, half closed, closed and not forgotten yet. */
  readonly inactiveConnections: number
  /** Since it was added: connections, and what came from clients and from it. */
  readonly connections: bigint
  readonly packetsIn: bigint
  readonly packetsOut: bigint
  readonly bytesIn: bigint
  readonly bytesOut: bigint
}

/** A virtual server as it is in the kernel. */
export interface ServerState {
  readonly server: VirtualServer
  readonly destinations: readonly DestinationState[]
}

/** One step. The kernel has no transactions for IPVS: each step takes effect by itself. */
export type IpvsOp =
  | { readonly op: 'addServer'; readonly server: VirtualServer }
  | { readonly op: 'setServer'; readonly server: VirtualServer }
  /** With its destinations, and all connections to them. */
  | { readonly op: 'deleteServer'; readonly server: ServerId }
  | { readonly op: 'addDestination'; readonly server: ServerId; readonly destination: Destination }
  | { readonly op: 'setDestination'; readonly server: ServerId; readonly destination: Destination }
  /** With all connections to it. */
  | { readonly op: 'deleteDestination'; readonly server: ServerId; readonly destination: DestinationId }

/** Map keys. */
export type ServerKey = string
export type DestinationKey = string

export function serverKey({ protocol, address, port }: ServerId): ServerKey {
  return `${protocol} ${address} ${port}`
}

export function destinationKey({ address, port }: DestinationId): DestinationKey {
  return `${address} ${port}`
}

export function sameServer(a: VirtualServer, b: VirtualServer): boolean {
  return (
    a.scheduler === b.scheduler &&
    a.schedulerFlags === b.schedulerFlags &&
    a.persistenceSeconds === b.persistenceSeconds
  )
}

/** IP_VS_SVC_F_SCHED1..3. For `sh` and `mh` the second says that the client's port counts, too. */
export const SCHEDULER_FLAGS = { fallback: 0x08, port: 0x10, third: 0x20 } as const
