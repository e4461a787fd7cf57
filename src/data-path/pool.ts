// A pool: backends, and the listeners that lead to them. What the control side says about it, and how threads are told.

import type { Family } from '../lib/ip.ts'
import type { SeenAs } from './seen-as.ts'
import type { PoolProtocol } from './sockets.ts'

export interface BackendSpec {
  readonly ip: string
  readonly port: number
  /** Its place on the health board. */
  readonly slot: number
  /** No other backend ever has it. */
  readonly serial: number
}

/** What may change while a pool is open. */
export interface PoolState {
  readonly backends: readonly BackendSpec[]
  /** Memory of the HealthBoard. */
  readonly health: SharedArrayBuffer
  readonly affinitySeconds: number | undefined
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
  /** The listening socket. The thread that serves it closes it. */
  readonly fd: number
  readonly seenAs: SeenAs
  /** An address of this node, at which connections to backends may begin. */
  readonly address: string
}

/** What a thread is told. */
export type Command =
  | { readonly kind: 'open'; readonly pool: PoolSpec }
  | { readonly kind: 'update'; readonly id: number; readonly state: PoolState }
  | { readonly kind: 'listen'; readonly listener: ListenerSpec }
  /** Serves clients that have already come, and closes the listener. Open connections go on. */
  | { readonly kind: 'shut'; readonly listener: number }
  /** All its listeners are shut. */
  | { readonly kind: 'close'; readonly id: number }
  /** Counts what goes to each backend in this memory; undefined: no longer. */
  | { readonly kind: 'count backends'; readonly memory: SharedArrayBuffer | undefined }
  /** Which backend a pool remembers for a client, an address. */
  | { readonly kind: 'find affinity'; readonly id: number; readonly pool: number; readonly client: string }
  /** Reports when all that came before is done, and all that was handed over before is taken. */
  | { readonly kind: 'report when done' }

/** What a thread has to say. */
export type Report =
  | { readonly kind: 'warning'; readonly message: string }
  | { readonly kind: 'done' }
  /** Answers `recall`, by its number. */
  | { readonly kind: 'affinity'; readonly id: number; readonly entry: AffinityEntry | undefined }

/** What affinity remembers of a client. */
export interface AffinityEntry {
  /** `ip port` */
  readonly backend: string
  readonly leftMs: number
}
