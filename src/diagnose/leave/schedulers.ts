// What the schedulers of IPVS do, and what comes closest elsewhere.

export interface SchedulerFacts {
  /** What it did. */
  readonly was: string
  readonly todo: string
}

const STAY = 'stay in ipvs mode, which this program keeps: --proxy-mode=ipvs'

const WAS: Readonly<Record<string, string>> = {
  rr: 'endpoints took turns',
  wrr: 'endpoints took turns, by their weights',
  lc: 'the endpoint with the fewest connections was chosen',
  wlc: 'the endpoint with the fewest connections for its weight was chosen',
  sed: 'the endpoint with the shortest expected delay was chosen, by connections and weights',
  nq: 'an idle endpoint was chosen, else the one with the shortest expected delay',
  sh: 'a client address always got the same endpoint',
  mh: 'a client address and port always got the same endpoint, on every node',
  dh: 'a service address always led to the same endpoint',
  lblc: 'a service address led to the same endpoint, until that had too many connections',
  lblcr: 'a service address led to the same few endpoints, by their connections',
  fo: 'the endpoint with the highest weight was chosen',
  ovf: 'the endpoint with the highest weight was chosen, until it had as many connections',
  twos: 'of two random endpoints the one with fewer connections for its weight was chosen',
}

export function describeScheduler(name: string): SchedulerFacts {
  return { was: WAS[name] ?? 'it chose in its own way', todo: STAY }
}
