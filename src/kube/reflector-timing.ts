// The waiting times of a reflector. Tests have shorter ones.

import { systemClock, type Clock } from '../lib/clock.ts'

export interface ReflectorTiming {
  readonly clock: Clock
  readonly random: () => number
  readonly backoffMs: number
  readonly maxBackoffMs: number
  /** Each watch ends after once to twice this time, so that load spreads over API servers again. */
  readonly watchSeconds: number
  /** A watch that ends within this time without an event counts as failed. */
  readonly shortWatchMs: number
  /** API servers send a bookmark every minute: after two missing ones the server is gone. */
  readonly watchIdleMs: number
  readonly listIdleMs: number
  /** Objects per page of a consistent list, which the server may read from etcd. */
  readonly pageSize: number
}

export const DEFAULT_TIMING: ReflectorTiming = {
  clock: systemClock,
  random: Math.random,
  backoffMs: 250,
  maxBackoffMs: 30_000,
  watchSeconds: 300,
  shortWatchMs: 1000,
  watchIdleMs: 130_000,
  listIdleMs: 60_000,
  pageSize: 2000,
}
