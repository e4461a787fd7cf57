// The addresses of this machine, of links that are down too.

import { KernelError } from '../lib/errors.ts'
import { type Family, familyOf, formatIp } from '../lib/ip.ts'
import { decodeAddress, decodeLinkOfAddress, writeAddressesRequest } from './bytes/address.ts'
import { decodeLink, decodeLinkSize, type LinkSize, writeLinksRequest } from './bytes/link.ts'
import { messagesOf } from '../netlink/message.ts'
import { NETLINK_ROUTE } from '../netlink/uapi/netlink.ts'
import * as uapi from './bytes/uapi/rtnetlink.ts'
import { Writer } from '../netlink/writer.ts'
import { drainSocket } from '../netlink/drain.ts'
import { NetlinkClient } from '../netlink/client.ts'
import { NetlinkSocket } from '../netlink/socket.ts'
import { watchReadable } from '../system/readable.ts'

/** How far an address reaches, as `ip address` names it. */
export type AddressScope = 'global' | 'site' | 'link' | 'host' | 'nowhere' | 'other'

const SCOPES: Readonly<Record<number, AddressScope>> = {
  [uapi.RT_SCOPE_UNIVERSE]: 'global',
  [uapi.RT_SCOPE_SITE]: 'site',
  [uapi.RT_SCOPE_LINK]: 'link',
  [uapi.RT_SCOPE_HOST]: 'host',
  [uapi.RT_SCOPE_NOWHERE]: 'nowhere',
}

export interface MachineAddress {
  /** Canonical text. */
  readonly address: string
  readonly family: Family
  readonly interfaceName: string
  readonly index: number
  readonly scope: AddressScope
  /** IFA_F_* of linux/if_addr.h: 0x40 while an IPv6 address is checked for duplicates. */
  readonly flags: number
}

/** How large the packets of each link in this network namespace may be. */
export function listLinkSizes(): LinkSize[] {
  const socket = new NetlinkSocket(NETLINK_ROUTE)
  try {
    return new NetlinkClient(socket.exchange).dump('list links', request(writeLinksRequest), decodeLinkSize)
  } finally {
    socket.close()
  }
}

/** Every address of every link in this network namespace. */
export function listAddresses(): MachineAddress[] {
  const socket = new NetlinkSocket(NETLINK_ROUTE)
  try {
    const client = new NetlinkClient(socket.exchange)
    const names = linkNames(client)
    return client.dump('list addresses', request(writeAddressesRequest), decodeAddress).map((message) => ({
      address: formatIp(message.address),
      family: familyOf(message.address),
      // A link that came between the two lists has no name yet; the watch reports its addresses.
      interfaceName: names.get(message.link) ?? '',
      index: message.link,
      scope: SCOPES[message.scope] ?? 'other',
      flags: message.flags,
    }))
  } finally {
    socket.close()
  }
}

export interface AddressWatchOptions {
  /** The name of a link whose addresses do not matter. Thousands of them may come and go, one by one. */
  readonly except?: ReadonlySet<string>
}

/** Calls back when addresses have come or gone, once for all that happened since the last time. */
export function watchAddresses(onChange: () => void, { except }: AddressWatchOptions = {}): { close(): void } {
  const socket = new NetlinkSocket(NETLINK_ROUTE, { groups: [uapi.RTNLGRP_IPV4_IFADDR, uapi.RTNLGRP_IPV6_IFADDR] })
  const links = new LinkNames()
  const readable = watchReadable(socket.fd, () => {
    const touched = drain(socket)
    const matters = touched === 'any' || [...touched].some((link) => except?.has(links.name(link) ?? '') !== true)
    if (matters) onChange()
  })
  return {
    close() {
      readable.close()
      socket.close()
    },
  }
}

/** The numbers of the links whose addresses changed; 'any' when some of it was lost. */
function drain(socket: NetlinkSocket): ReadonlySet<number> | 'any' {
  const touched = new Set<number>()
  const result = drainSocket(socket, (datagram) => {
    for (const message of messagesOf(datagram)) {
      const link = decodeLinkOfAddress(message)
      if (link !== undefined) touched.add(link)
    }
  })
  return result === 'lost' ? 'any' : touched
}

/** The names of links by their numbers, which the kernel does not give away again. Asked for when a number is new. */
class LinkNames {
  #names: ReadonlyMap<number, string> = new Map()

  /** Undefined when the kernel does not say, for want of memory or of a file descriptor: then it may be any link. */
  name(index: number): string | undefined {
    if (this.#names.has(index)) return this.#names.get(index)
    try {
      this.#names = listLinks()
    } catch (error) {
      if (!(error instanceof KernelError)) throw error
    }
    return this.#names.get(index)
  }
}

function listLinks(): ReadonlyMap<number, string> {
  const socket = new NetlinkSocket(NETLINK_ROUTE)
  try {
    return linkNames(new NetlinkClient(socket.exchange))
  } finally {
    socket.close()
  }
}

function linkNames(client: NetlinkClient): ReadonlyMap<number, string> {
  return new Map(
    client.dump('list links', request(writeLinksRequest), decodeLink).map(({ index, name }) => [index, name]),
  )
}

function request(write: (writer: Writer) => void): Uint8Array {
  const writer = new Writer(64)
  write(writer)
  return writer.written()
}
