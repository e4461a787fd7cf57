// Messages of rtnetlink about addresses, and as much about links as it takes to name them. net/ipv4/devinet.c,
// net/ipv6/addrconf.c, net/core/rtnetlink.c

import type { Bytes } from '../../lib/ip.ts'
import { attr, bytes, cstring, ne32, nest, opt } from '../../netlink/attributes.ts'
import type { Message } from '../../netlink/message.ts'
import { NLM_F_DUMP, NLM_F_REQUEST } from '../../netlink/uapi/netlink.ts'
import { IFA_FLAGS, IFLA_EXT_MASK, RTEXT_FILTER_SKIP_STATS } from './uapi/if_addr.ts'
import {
  IFA_ADDRESS,
  IFA_LOCAL,
  IFLA_IFNAME,
  RTM_DELADDR,
  RTM_GETADDR,
  RTM_GETLINK,
  RTM_NEWADDR,
  RTM_NEWLINK,
} from './uapi/if_link.ts'
import { LITTLE_ENDIAN, type Writer } from '../../netlink/writer.ts'

const AF_INET = 2
const AF_INET6 = 10

/** struct ifaddrmsg: family, prefix length, flags, scope (1 byte each), index of the link (4). */
const IFADDRMSG_LENGTH = 8

/** struct ifinfomsg: family, padding (1 byte each), type (2), index, flags, mask (4 each). */
const IFINFOMSG_LENGTH = 16

const addressAttributes = nest({
  address: opt(IFA_ADDRESS, bytes),
  local: opt(IFA_LOCAL, bytes),
  flags: opt(IFA_FLAGS, ne32),
})

const linkAttributes = nest({ name: attr(IFLA_IFNAME, cstring) })
const linkFilter = nest({ mask: attr(IFLA_EXT_MASK, ne32) })

export interface AddressMessage {
  readonly address: Bytes
  readonly index: number
  readonly scope: number
  readonly flags: number
}

/** Asks for the addresses of all links, of both families. */
export function writeAddressesRequest(writer: Writer): void {
  writer.beginMessage(RTM_GETADDR, NLM_F_REQUEST | NLM_F_DUMP)
  writer.raw('\0'.repeat(IFADDRMSG_LENGTH))
  writer.endMessage()
}

/** Asks for all links, without the statistics that make up most of the answer. */
export function writeLinksRequest(writer: Writer): void {
  writer.beginMessage(RTM_GETLINK, NLM_F_REQUEST | NLM_F_DUMP)
  writer.raw('\0'.repeat(IFINFOMSG_LENGTH))
  linkFilter.write(writer, { mask: RTEXT_FILTER_SKIP_STATS })
  writer.endMessage()
}

export function decodeAddress({ type, view, start, end }: Message): AddressMessage | undefined {
  if (type !== RTM_NEWADDR || end - start < IFADDRMSG_LENGTH) return undefined
  const family = view.getUint8(start)
  if (family !== AF_INET && family !== AF_INET6) return undefined
  const attributes = addressAttributes.read(view, start + IFADDRMSG_LENGTH, end)
  // On a link between two machines, the address is that of the other one and ours is the local one.
  const address = attributes?.local ?? attributes?.address
  if (address === undefined) return undefined
  return {
    address,
    index: view.getUint32(start + 4, LITTLE_ENDIAN),
    scope: view.getUint8(start + 3),
    flags: attributes?.flags ?? view.getUint8(start + 2),
  }
}

/** The link that a message about an address is about, which came or went. */
export function readLinkOfAddress({ type, view, start, end }: Message): number | undefined {
  if ((type !== RTM_NEWADDR && type !== RTM_DELADDR) || end - start < IFADDRMSG_LENGTH) return undefined
  return view.getUint32(start + 4, LITTLE_ENDIAN)
}

export function decodeLink({ type, view, start, end }: Message): { index: number; name: string } | undefined {
  if (type !== RTM_NEWLINK || end - start < IFINFOMSG_LENGTH) return undefined
  const name = linkAttributes.read(view, start + IFINFOMSG_LENGTH, end)?.name
  return name === undefined ? undefined : { index: view.getUint32(start + 4, LITTLE_ENDIAN), name }
}
