// The messages between the control side and the threads about a pool: backends, and the listeners that lead to them.

import type { Family } from '../lib/ip.ts'
import type { SeenAs } from './seen-as.ts'
import type { PoolProtocol } from './sockets.ts'

export interface BackendSpec {
  readonly ip: string
  readonly port: number
  /** Its index on the health board. */
  readonly slot: number
  /** No other backend ever has it. */
  readonly serial: number
  /** Its share of new clients; absent: 1. */
  readonly weight?: number | undefined
}

/** By what of a client its backend is chosen: its address, or that and its port. */
export type HashBy = 'client' | 'connection'

/** What may change while a pool is open. */
export interface PoolState {
  readonly backends: readonly BackendSpec[]
  /** Memory of the HealthBoard. */
  readonly health: SharedArrayBuffer
  readonly affinitySeconds: number | undefined
  /** Absent: backends take turns. */
  readonly hashBy?: HashBy | undefined
}

export interface PoolSpec extends PoolState {
  readonly id: number
  readonly family: Family
  readonly protocol: PoolProtocol
  /** Memory of the counters of all threads. */
  readonly counters: SharedArrayBuffer
}

/** A listener of a pool. */
export interface ListenerSpec {
  readonly id: number
  readonly pool: number
  /** The listening socket, which the thread closes. */
  readonly fd: number
  readonly seenAs: SeenAs
  /** An address of this node, at which connections to backends may begin. */
  readonly address: string
}

/** From the control side to a thread. */
export type Command =
  | { readonly kind: 'open'; readonly pool: PoolSpec }
  | { readonly kind: 'update'; readonly id: number; readonly state: PoolState }
  | { readonly kind: 'listen'; readonly listener: ListenerSpec }
  /** Serves clients that have already come, and closes the socket. Open connections go on. */
  | { readonly kind: 'close listener'; readonly listener: number }
  /** After its listeners. */
  | { readonly kind: 'close pool'; readonly id: number }
  /** undefined: stops counting. */
  | { readonly kind: 'count backends'; readonly memory: SharedArrayBuffer | undefined }
  /** The pool's affinity entry for a client address. */
  | { readonly kind: 'find affinity'; readonly id: number; readonly pool: number; readonly client: string }
  /** After all earlier commands, and all clients that other threads handed over before. */
  | { readonly kind: 'report when done' }

/** From a thread to the control side. */
export type Report =
  | { readonly kind: 'warning'; readonly message: string }
  | { readonly kind: 'done' }
  /** Answers the 'find affinity' of this number. */
  | { readonly kind: 'affinity'; readonly id: number; readonly entry: AffinityEntry | undefined }

export interface AffinityEntry {
  /** `ip port` */
  readonly backend: string
  readonly leftMs: number
}
