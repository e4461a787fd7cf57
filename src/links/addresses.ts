// The addresses of this machine, of links that are down too.

import { KernelError } from '../lib/errors.ts'
import { type Family, familyOf, formatIp } from '../lib/ip.ts'
import { decodeAddress, decodeLinkOfAddress, writeAddressesRequest } from './bytes/address.ts'
import { decodeLink, decodeLinkSize, type LinkSize, writeLinksRequest } from './bytes/link.ts'
import { NETLINK_ROUTE } from '../netlink/uapi/netlink.ts'
import * as uapi from './bytes/uapi/rtnetlink.ts'
import { NetlinkConnection } from '../netlink/connection.ts'
import { subscribe } from '../netlink/subscribe.ts'

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
  using netlink = new NetlinkConnection(NETLINK_ROUTE)
  return netlink.dump('list links', writeLinksRequest, decodeLinkSize)
}

/** Every address of every link in this network namespace. */
export function listAddresses(): MachineAddress[] {
  using netlink = new NetlinkConnection(NETLINK_ROUTE)
  const names = linkNames(netlink)
  return netlink.dump('list addresses', writeAddressesRequest, decodeAddress).map((message) => ({
    address: formatIp(message.address),
    family: familyOf(message.address),
    // A link that came between the two lists has no name yet; the watch reports its addresses.
    interfaceName: names.get(message.link) ?? '',
    index: message.link,
    scope: SCOPES[message.scope] ?? 'other',
    flags: message.flags,
  }))
}

export interface AddressWatchOptions {
  /** The name of a link whose addresses do not matter. Thousands of them may come and go, one by one. */
  readonly except?: ReadonlySet<string>
}

/** Calls back when addresses have come or gone, once for all that happened since the last time. */
export function watchAddresses(onChange: () => void, { except }: AddressWatchOptions = {}): { close(): void } {
  const links = new LinkNames()
  let touched = new Set<number>()
  let isAny = false
  return subscribe(NETLINK_ROUTE, {
    groups: [uapi.RTNLGRP_IPV4_IFADDR, uapi.RTNLGRP_IPV6_IFADDR],
    onMessage: (message) => {
      const link = decodeLinkOfAddress(message)
      if (link !== undefined) touched.add(link)
    },
    onLost: () => {
      isAny = true
    },
    onRead: () => {
      const matters = isAny || [...touched].some((link) => except?.has(links.name(link) ?? '') !== true)
      touched = new Set()
      isAny = false
      if (matters) onChange()
    },
  })
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
  using netlink = new NetlinkConnection(NETLINK_ROUTE)
  return linkNames(netlink)
}

function linkNames(netlink: NetlinkConnection): ReadonlyMap<number, string> {
  return new Map(netlink.dump('list links', writeLinksRequest, decodeLink).map(({ index, name }) => [index, name]))
}
