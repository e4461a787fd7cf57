// Hears when another program changes addresses: those of our link, or those that the machine has besides.

import { KernelError } from '../lib/errors.ts'
import { type Family, familyOf, formatIp } from '../lib/ip.ts'
import { decodeAddress } from './bytes/address.ts'
import { type Message, messagesOf } from '../netlink/message.ts'
import { RTM_NEWADDR, RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV6_IFADDR } from './bytes/uapi/rtnetlink.ts'
import { NETLINK_ROUTE } from '../netlink/uapi/netlink.ts'
import { drainSocket } from '../netlink/drain.ts'
import type { LinkDriver } from './driver.ts'
import { NetlinkSocket } from '../netlink/socket.ts'
import { watchReadable } from '../system/readable.ts'

/** Calls back with the family whose addresses are not what they were; what the drivers themselves did does not count. */
export function watchLink(
  drivers: ReadonlyMap<Family, LinkDriver>,
  onChange: (family: Family) => void,
): { close(): void } {
  const socket = new NetlinkSocket(NETLINK_ROUTE, { groups: [RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV6_IFADDR] })
  const others = new Map(Array.from(drivers, ([family, driver]) => [family, readOthers(driver, family)]))
  const readable = watchReadable(socket.fd, () => {
    const { own, foreign } = drain(socket, drivers)
    for (const [family, driver] of drivers) {
      // Routers keep announcing addresses that the machine has already.
      const now = foreign.has(family) ? readOthers(driver, family) : others.get(family)
      const isUnknown = foreign.has(family) && now === undefined
      const isChanged = own.has(family) || isUnknown || now !== others.get(family)
      others.set(family, now)
      if (isChanged) onChange(family)
    }
  })
  return {
    close() {
      readable.close()
      socket.close()
    },
  }
}

/** The families of which there were messages about our link, and about others. */
interface Heard {
  readonly own: Set<Family>
  readonly foreign: Set<Family>
}

function drain(socket: NetlinkSocket, drivers: ReadonlyMap<Family, LinkDriver>): Heard {
  const heard: Heard = { own: new Set(), foreign: new Set() }
  const result = drainSocket(socket, (datagram) => {
    for (const message of messagesOf(datagram)) hear(message, drivers, heard)
  })
  // It may have been anything.
  if (result === 'lost') for (const family of drivers.keys()) heard.own.add(family)
  return heard
}

/** Which process did it is unknown: the kernel announces a new IPv6 address later, and in its own name. What was done is known. */
function hear(message: Message, drivers: ReadonlyMap<Family, LinkDriver>, { own, foreign }: Heard): void {
  const heard = decodeAddress(message)
  if (heard === undefined) return
  const family = familyOf(heard.address)
  const driver = drivers.get(family)
  if (driver === undefined) return
  if (driver.index !== heard.link) foreign.add(family)
  else if (driver.expects(formatIp(heard.address)) !== (message.type === RTM_NEWADDR)) own.add(family)
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
