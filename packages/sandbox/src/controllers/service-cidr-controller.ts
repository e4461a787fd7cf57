// ServiceCIDRs: ready at once, and kept from going away while an address of theirs is in use.

import { formatTime } from '../apiserver/time.ts'
import { IpRange } from '../apiserver/allocation/ip-range.ts'
import { ipAddresses, serviceCidrs } from '../apiserver/resources/table.ts'
import { isDeleting } from '../apiserver/objects/meta.ts'
import { placeOf } from './controller.ts'
import { setCondition } from './conditions.ts'
import type { ControllerContext } from './controller.ts'
import type { ServiceCIDR } from '../apiserver/objects/small.ts'

const finalizer = 'networking.k8s.io/service-cidr-finalizer'

export function startServiceCidrController(context: ControllerContext): void {
  const { registry, loop } = context
  const queue = loop.queue('servicecidrs', (key) => sync(context, key))
  const all = registry.collection(serviceCidrs)
  all.watchKeys(queue.add)
  registry.collection(ipAddresses).listen(({ after }) => {
    if (after !== undefined) return
    for (const { key, object } of all.values()) if (isDeleting(object)) queue.add(key)
  })
}

function sync({ registry }: ControllerContext, key: string): void {
  const place = placeOf(key)
  const cidr = registry.find(serviceCidrs, place)?.object
  if (cidr === undefined) return
  const now = formatTime(registry.now())
  if (!isDeleting(cidr)) {
    registry.modify(serviceCidrs, place, ({ metadata }) => {
      const finalizers = (metadata.finalizers ??= [])
      if (!finalizers.includes(finalizer)) finalizers.push(finalizer)
    })
    const message = 'Kubernetes Service CIDR is ready'
    if (cidr.status.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True')) return
    const ready = { type: 'Ready', status: 'True', reason: '', message }
    registry.modify(serviceCidrs, place, ({ status }) => setCondition(status, ready, now), 'status')
    return
  }
  const others = registry
    .collection(serviceCidrs)
    .objects()
    .filter((one) => one !== cidr)
  const addresses = registry
    .collection(ipAddresses)
    .objects()
    .map(({ metadata }) => metadata.name)
  if (isNeeded(cidr, others, addresses)) {
    const message =
      'There are still IPAddresses referencing the ServiceCIDR, please remove them or create a new ServiceCIDR'
    const waiting = { type: 'Ready', status: 'False', reason: 'Terminating', message }
    registry.modify(serviceCidrs, place, ({ status }) => setCondition(status, waiting, now), 'status')
    return
  }
  registry.modify(serviceCidrs, place, ({ metadata }) => {
    metadata.finalizers = (metadata.finalizers ?? []).filter((name) => name !== finalizer)
  })
}

/** Whether an address is in this range and in no other that stays. Pure. */
export function isNeeded(cidr: ServiceCIDR, others: readonly ServiceCIDR[], addresses: readonly string[]): boolean {
  const rangesOf = ({ spec }: ServiceCIDR): IpRange[] => (spec.cidrs ?? []).map((text) => IpRange.parse(text))
  const own = rangesOf(cidr)
  const rest = others.filter((other) => !isDeleting(other)).flatMap(rangesOf)
  const within = (ranges: readonly IpRange[], address: string): boolean =>
    ranges.some((range) => range.contains(address))
  return addresses.some((address) => within(own, address) && !within(rest, address))
}
