// Notices when another program changes addresses: those of our link, or those that the machine has besides.

import { KernelError } from '../lib/errors.ts'
import { type Family, familyOf, formatIp } from '../lib/ip.ts'
import { decodeAddress } from './bytes/address.ts'
import type { Message } from '../netlink/message.ts'
import { RTM_NEWADDR, RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV6_IFADDR } from './bytes/uapi/rtnetlink.ts'
import { NETLINK_ROUTE } from '../netlink/uapi/netlink.ts'
import type { LinkDriver } from './driver.ts'
import { subscribe } from '../netlink/subscribe.ts'

/** Calls back with the family whose addresses are not what they were; what the drivers themselves did does not count. */
export function watchLink(
  drivers: ReadonlyMap<Family, LinkDriver>,
  onChange: (family: Family) => void,
): { close(): void } {
  const others = new Map<Family, string | undefined>()
  const touched: Touched = { own: new Set(), foreign: new Set() }
  const subscription = subscribe(NETLINK_ROUTE, {
    groups: [RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV6_IFADDR],
    onMessage: (message) => note(message, drivers, touched),
    // It may have been anything.
    onLost: () => drivers.forEach((_, family) => touched.own.add(family)),
    onRead: () => {
      for (const [family, driver] of drivers) {
        const isForeign = touched.foreign.delete(family)
        // Routers keep announcing addresses that the machine has already.
        const now = isForeign ? readOthers(driver, family) : others.get(family)
        const isUnknown = isForeign && now === undefined
        const isChanged = touched.own.delete(family) || isUnknown || now !== others.get(family)
        others.set(family, now)
        if (isChanged) onChange(family)
      }
    },
  })
  for (const [family, driver] of drivers) others.set(family, readOthers(driver, family))
  return subscription
}

/** The families of which there were messages about our link, and about others, since they were looked at. */
interface Touched {
  readonly own: Set<Family>
  readonly foreign: Set<Family>
}

/** Which process did it is unknown: the kernel announces a new IPv6 address later, and in its own name. What was done is known. */
function note(message: Message, drivers: ReadonlyMap<Family, LinkDriver>, { own, foreign }: Touched): void {
  const changed = decodeAddress(message)
  if (changed === undefined) return
  const family = familyOf(changed.address)
  const driver = drivers.get(family)
  if (driver === undefined) return
  if (driver.index !== changed.link) foreign.add(family)
  else if (driver.expects(formatIp(changed.address)) !== (message.type === RTM_NEWADDR)) own.add(family)
}

/** Undefined when the kernel does not say: then they may be anything, and the comparison that follows finds out. */
function readOthers(driver: LinkDriver, family: Family): string | undefined {
  try {
    return driver.readOthers(family).sort().join(' ')
  } catch (error) {
    if (error instanceof KernelError) return undefined
    throw error
  }
}
