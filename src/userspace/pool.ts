// A pool: one listener and the backends behind it. What the control side says about it, and how threads are told.

import type { Family } from '../lib/ip.ts'
import type { PoolProtocol } from './sockets.ts'

export interface BackendSpec {
  readonly ip: string
  readonly port: number
  /** Its place on the health board. */
  readonly slot: number
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
  /** This thread's socket. The thread closes it. */
  readonly fd: number
  /** Memory of the counters of all threads. */
  readonly counters: SharedArrayBuffer
}

/** What a thread is told. */
export type Command =
  | { readonly kind: 'open'; readonly pool: PoolSpec }
  | { readonly kind: 'update'; readonly id: number; readonly state: PoolState }
  /** Serves who has already come, and closes the listener. Open connections go on. */
  | { readonly kind: 'close'; readonly id: number }

/** What a thread has to say. */
export interface Report {
  readonly kind: 'warning'
  readonly message: string
}
