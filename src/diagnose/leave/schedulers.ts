// What the schedulers of IPVS do, and what comes closest elsewhere.

import type { Balance } from '../../model/balance.ts'

export interface SchedulerFacts {
  /** What it did. */
  readonly was: string
  /** What does nearly the same, where a mode has it; undefined: nothing does. */
  readonly closest: Balance | undefined
}

const SCHEDULERS: Readonly<Record<string, SchedulerFacts>> = {
  rr: { was: 'endpoints took turns', closest: undefined },
  wrr: { was: 'endpoints took turns, by their weights', closest: undefined },
  lc: { was: 'the endpoint with the fewest connections was chosen', closest: 'least-connections' },
  wlc: {
    was: 'the endpoint with the fewest connections for its weight was chosen',
    closest: 'least-connections',
  },
  sed: {
    was: 'the endpoint with the shortest expected delay was chosen, by connections and weights',
    closest: 'least-connections',
  },
  nq: {
    was: 'an idle endpoint was chosen, else the one with the shortest expected delay',
    closest: 'least-connections',
  },
  sh: { was: 'a client address always got the same endpoint', closest: 'hash-client' },
  mh: {
    was: 'a client address and port always got the same endpoint, on every node',
    closest: 'hash-connection',
  },
  dh: { was: 'a service address always led to the same endpoint', closest: undefined },
  lblc: {
    was: 'a service address led to the same endpoint, until that had too many connections',
    closest: undefined,
  },
  lblcr: { was: 'a service address led to the same few endpoints, by their connections', closest: undefined },
  fo: { was: 'the endpoint with the highest weight was chosen', closest: undefined },
  ovf: {
    was: 'the endpoint with the highest weight was chosen, until it had as many connections',
    closest: undefined,
  },
  twos: {
    was: 'of two random endpoints the one with fewer connections for its weight was chosen',
    closest: 'least-connections',
  },
}

export function describeScheduler(name: string): SchedulerFacts {
  return SCHEDULERS[name] ?? { was: 'it chose in its own way', closest: undefined }
}
