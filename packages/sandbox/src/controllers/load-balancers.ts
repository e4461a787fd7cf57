// Addresses for services of type LoadBalancer, from a pool of the sandbox.

import { ipFamily } from '../../../../src/lib/ip.ts'
import { IpRange } from '../apiserver/allocation/ip-range.ts'
import { isDeleting } from '../apiserver/objects/meta.ts'
import { placeOf } from './controller.ts'
import { services } from '../apiserver/resources/table.ts'
import type { ControllerContext } from './controller.ts'
import type { Service } from '../apiserver/objects/service.ts'

const source = 'service-controller'
/** The class of services that are ours: that one, or none at all. */
export const loadBalancerClass = 'sandbox'

export function startLoadBalancers(context: ControllerContext, pool: readonly string[]): void {
  const { registry, loop } = context
  const ranges = pool.map((cidr) => IpRange.parse(cidr))
  const all = registry.collection(services)
  const queue = loop.queue('loadbalancers', (key) => {
    const service = all.get(key)?.object
    if (service === undefined || isDeleting(service) || !hasOurLoadBalancer(service)) return
    const others = [...all.values()].filter((stored) => stored.key !== key)
    const taken = new Set(
      others.flatMap(({ object }) => (object.status.loadBalancer.ingress ?? []).map(({ ip }) => ip ?? '')),
    )
    assign(context, key, planLoadBalancer(service, ranges, taken))
  })
  for (const { key } of all.list()) queue.add(key)
  all.listen(({ key, before, after }) => {
    queue.add(key)
    // What is freed may be what another one waits for.
    if (
      before !== undefined &&
      hasOurLoadBalancer(before.object) &&
      (after === undefined || !hasOurLoadBalancer(after.object))
    ) {
      for (const stored of all.values()) if (hasOurLoadBalancer(stored.object)) queue.add(stored.key)
    }
  })

  function assign({ registry, events }: ControllerContext, key: string, plan: LoadBalancerPlan): void {
    const service = all.get(key)!.object
    if (plan.kind === 'none') {
      events.record(service, { type: 'Warning', reason: 'SyncLoadBalancerFailed', message: plan.reason, source })
      return
    }
    const before = (service.status.loadBalancer.ingress ?? []).map(({ ip }) => ip)
    if (before.join() === plan.ips.join()) return
    registry.modify(
      services,
      placeOf(key),
      ({ status }) => (status.loadBalancer = { ingress: plan.ips.map((ip) => ({ ip, ipMode: 'VIP' })) }),
      'status',
    )
    events.record(service, { reason: 'EnsuredLoadBalancer', message: 'Ensured load balancer', source })
  }
}

export function hasOurLoadBalancer({ spec }: Service): boolean {
  return spec.type === 'LoadBalancer' && (spec.loadBalancerClass ?? loadBalancerClass) === loadBalancerClass
}

export type LoadBalancerPlan =
  | { readonly kind: 'ips'; readonly ips: readonly string[] }
  | { readonly kind: 'none'; readonly reason: string }

/** One address per family of the service: what it has, what it asks for, or the lowest free one. Pure. */
export function planLoadBalancer(
  { spec, status }: Service,
  ranges: readonly IpRange[],
  taken: ReadonlySet<string>,
): LoadBalancerPlan {
  const has = (status.loadBalancer.ingress ?? []).map(({ ip }) => ip ?? '')
  const ips: string[] = []
  for (const family of spec.ipFamilies ?? ['IPv4']) {
    const version = family === 'IPv6' ? 6 : 4
    const own = ranges.filter(({ cidr }) => cidr.family === version)
    const asked = ipFamily(spec.loadBalancerIP ?? '') === version ? spec.loadBalancerIP : undefined
    if (asked !== undefined && (taken.has(asked) || !own.some((range) => range.contains(asked)))) {
      const reason = `Cannot give out the load balancer IP ${asked}: it is ${taken.has(asked) ? 'taken' : 'not in the pool'}`
      return { kind: 'none', reason }
    }
    const kept = has.find((ip) => ipFamily(ip) === version && own.some((range) => range.contains(ip)) && !taken.has(ip))
    const ip = asked ?? kept ?? lowestFree(own, taken)
    if (ip === undefined) {
      return { kind: 'none', reason: `Cannot give out a load balancer IP: the pool has no free ${family} address` }
    }
    ips.push(ip)
  }
  return { kind: 'ips', ips }
}

function lowestFree(ranges: readonly IpRange[], taken: ReadonlySet<string>): string | undefined {
  for (const range of ranges) {
    for (let i = 0; i < Math.min(range.size, taken.size + 1); i++) {
      if (!taken.has(range.at(i))) return range.at(i)
    }
  }
  return undefined
}
