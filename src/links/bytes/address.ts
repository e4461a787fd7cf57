// Addresses of links: struct ifaddrmsg and its attributes. net/ipv4/devinet.c, net/ipv6/addrconf.c

import { familyOf, type Bytes, type Family } from '../../lib/ip.ts'
import { bytes, ne32, nest, opt } from '../../netlink/attributes.ts'
import type { Message } from '../../netlink/message.ts'
import { NLM_F_ACK, NLM_F_CREATE, NLM_F_DUMP, NLM_F_EXCL, NLM_F_REQUEST } from '../../netlink/uapi/netlink.ts'
import { LITTLE_ENDIAN } from '../../lib/endian.ts'
import type { Writer } from '../../netlink/writer.ts'
import { ADDRESS_FAMILY } from './address-family.ts'
import * as uapi from './uapi/rtnetlink.ts'

/** family, prefix length, flags, scope (1 byte each), index of the link (4) */
const IFADDRMSG_LENGTH = 8

const addressAttributes = nest({
  address: opt(uapi.IFA_ADDRESS, bytes),
  local: opt(uapi.IFA_LOCAL, bytes),
  flags: opt(uapi.IFA_FLAGS, ne32),
})

/** An address of a link, as the kernel reports it. */
export interface LinkAddress {
  readonly address: Bytes
  /** The index of the link. */
  readonly link: number
  readonly scope: number
  readonly flags: number
}

/** An address that is added or deleted. */
export interface AddressRequest {
  /** The index of the link. */
  readonly link: number
  readonly address: Bytes
  /** How many bits of it all neighbours share. */
  readonly prefix: number
  /** Whether the kernel answers when it has succeeded, too. */
  readonly acknowledge: boolean
}

/** Asks for the addresses of all links, of one family or of both. */
export function writeAddressesRequest(writer: Writer, family?: Family): void {
  writer.beginMessage(uapi.RTM_GETADDR, NLM_F_REQUEST | NLM_F_DUMP)
  writeHeader(writer, { family: family === undefined ? 0 : ADDRESS_FAMILY[family], prefix: 0, flags: 0, link: 0 })
  writer.endMessage()
}

/** Adds an address that is usable at once: the kernel does not look for another host that has it. */
export function writeNewAddress(writer: Writer, request: AddressRequest): void {
  writeAddress(writer, uapi.RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, request)
}

export function writeDeleteAddress(writer: Writer, request: AddressRequest): void {
  writeAddress(writer, uapi.RTM_DELADDR, 0, request)
}

/** The address that came or went. */
export function decodeAddress(message: Message): LinkAddress | undefined {
  const link = decodeLinkOfAddress(message)
  if (link === undefined) return undefined
  const { view, start, end } = message
  const attributes = addressAttributes.read(view, start + IFADDRMSG_LENGTH, end)
  // On a point-to-point link, uapi.IFA_ADDRESS is the other end.
  const address = attributes?.local ?? attributes?.address
  if (address === undefined) return undefined
  return {
    address,
    link,
    scope: view.getUint8(start + 3),
    flags: attributes?.flags ?? view.getUint8(start + 2),
  }
}

/** The link whose address came or went. */
export function decodeLinkOfAddress({ type, view, start, end }: Message): number | undefined {
  if ((type !== uapi.RTM_NEWADDR && type !== uapi.RTM_DELADDR) || end - start < IFADDRMSG_LENGTH) return undefined
  const family = view.getUint8(start)
  if (family !== ADDRESS_FAMILY[4] && family !== ADDRESS_FAMILY[6]) return undefined
  return view.getUint32(start + 4, LITTLE_ENDIAN)
}

function writeAddress(writer: Writer, type: number, flags: number, request: AddressRequest): void {
  const { link, address, prefix, acknowledge } = request
  writer.beginMessage(type, NLM_F_REQUEST | flags | (acknowledge ? NLM_F_ACK : 0))
  writeHeader(writer, {
    family: ADDRESS_FAMILY[familyOf(address)],
    prefix,
    flags: type === uapi.RTM_NEWADDR ? uapi.IFA_F_NODAD : 0,
    link,
  })
  addressAttributes.write(writer, { address, local: address })
  writer.endMessage()
}

function writeHeader(writer: Writer, header: { family: number; prefix: number; flags: number; link: number }): void {
  writer.u8(header.family)
  writer.u8(header.prefix)
  writer.u8(header.flags)
  writer.u8(0)
  writer.ne32(header.link)
}
