// The virtual servers of a service port.

import type { BackendList } from '../../../model/backend-list.ts'
import type { Frontend, NodeView, ServicePortView, Verdict } from '../../../model/types.ts'
import type { WantedServer } from '../../../ipvs/owners.ts'
import { SCHEDULER_FLAGS, type Destination } from '../../../ipvs/types.ts'
import { isLeftAlone, servedVerdict } from './frontend.ts'

export interface ServerSettings {
  /** The kernel's name of the scheduler. */
  readonly scheduler: string
  /** The addresses on which node ports are open. */
  readonly nodePortAddresses: readonly string[]
}

export const DEFAULT_SCHEDULER = 'rr'
const DEFAULT_WEIGHT = 1

/**
 * One for each frontend, and one for each address of a node port. Those of frontends without backends have no destinations. One that
 * is left alone has none: its address is not this node's, unless another port of it is served. */
export function planServers(node: NodeView, port: ServicePortView, settings: ServerSettings): WantedServer[] {
  return port.frontends.flatMap((frontend) => {
    if (isLeftAlone(frontend)) return []
    const destinations = destinationsOf(frontend)
    const by = frontend.address === undefined ? 'nodePort' : 'address'
    const { scheduler, flags } = schedulingOf(servedVerdict(frontend), settings)
    return addressesOf(frontend, settings).map((address) => ({
      by,
      server: {
        family: node.family,
        protocol: frontend.protocol,
        address,
        port: frontend.port,
        scheduler,
        schedulerFlags: flags,
        persistenceSeconds: frontend.affinitySeconds,
      },
      destinations,
    }))
  })
}

function addressesOf(frontend: Frontend, { nodePortAddresses }: ServerSettings): readonly string[] {
  return frontend.address === undefined ? nodePortAddresses : [frontend.address]
}

/** Schedulers that do not look at weights, and those that do the same with weights. */
const WEIGHED: Readonly<Record<string, string>> = { rr: 'wrr', lc: 'wlc' }

interface Scheduling {
  readonly scheduler: string
  readonly flags: number
}

function schedulingOf(verdict: Verdict, { scheduler }: ServerSettings): Scheduling {
  if (verdict.kind !== 'to') return { scheduler, flags: flagsFor(scheduler) }
  const { balance, isWeighted } = verdict.backends
  // While a destination drains, its clients need another one.
  const { fallback, port } = SCHEDULER_FLAGS
  if (balance === 'hash-client') return { scheduler: 'mh', flags: fallback }
  if (balance === 'hash-connection') return { scheduler: 'mh', flags: fallback | port }
  const plain = balance === 'least-connections' ? 'lc' : scheduler
  const chosen = (isWeighted ? WEIGHED[plain] : undefined) ?? plain
  return { scheduler: chosen, flags: flagsFor(chosen) }
}

/** As kube-proxy: Maglev hashing takes the client's port, too, so that one client is spread over many backends. */
export function flagsFor(scheduler: string): number {
  return scheduler === 'mh' ? SCHEDULER_FLAGS.port : 0
}

const NONE: readonly Destination[] = []

/** The model keeps lists that did not change; so do we, and the diff looks at identity first. */
const cache = new WeakMap<BackendList, readonly Destination[]>()

function destinationsOf(frontend: Frontend): readonly Destination[] {
  const verdict = servedVerdict(frontend)
  if (verdict.kind !== 'to') return NONE
  let destinations = cache.get(verdict.backends)
  if (destinations === undefined) {
    destinations = verdict.backends.map(({ ip, port, weight = DEFAULT_WEIGHT }) => ({ address: ip, port, weight }))
    cache.set(verdict.backends, destinations)
  }
  return destinations
}
