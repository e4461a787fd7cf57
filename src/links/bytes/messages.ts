// Messages of rtnetlink about links and their addresses: struct ifinfomsg and struct ifaddrmsg, then attributes.

import { familyOf, formatIp, parseIp, type Bytes, type Family } from '../../lib/ip.ts'
import type { LinkOp } from '../types.ts'
import { attr, bytes, cstring, nest, opt } from '../../netlink/attributes.ts'
import type { Message } from '../../netlink/message.ts'
import {
  IFA_ADDRESS,
  IFA_F_NODAD,
  IFA_LOCAL,
  IFLA_IFNAME,
  IFLA_INFO_KIND,
  IFLA_LINKINFO,
  RTM_DELADDR,
  RTM_DELLINK,
  RTM_GETADDR,
  RTM_GETLINK,
  RTM_NEWADDR,
  RTM_NEWLINK,
} from './uapi/if_link.ts'
import { NLM_F_ACK, NLM_F_CREATE, NLM_F_DUMP, NLM_F_EXCL, NLM_F_REQUEST } from '../../netlink/uapi/netlink.ts'
import { LITTLE_ENDIAN, type Writer } from '../../netlink/writer.ts'

const AF_INET = 2
const AF_INET6 = 10

/** family (1 byte), padding (1), type (2), index (4), flags (4), change (4) */
const IFINFOMSG_LENGTH = 16
/** family (1 byte), prefix length (1), flags (1), scope (1), index (4) */
const IFADDRMSG_LENGTH = 8

const linkAttributes = nest({
  name: attr(IFLA_IFNAME, cstring),
  info: opt(IFLA_LINKINFO, nest({ kind: opt(IFLA_INFO_KIND, cstring) })),
})

const addressAttributes = nest({ address: opt(IFA_ADDRESS, bytes), local: opt(IFA_LOCAL, bytes) })

/** A link as the kernel describes it. */
export interface Link {
  readonly index: number
  readonly name: string
  /** `dummy`, `veth`; undefined for hardware. */
  readonly kind: string | undefined
}

/** An address of a link, canonical. */
export interface LinkAddress {
  readonly family: Family
  readonly link: number
  readonly address: string
}

export function writeLinkRequest(writer: Writer, name: string): void {
  beginLinkMessage(writer, RTM_GETLINK, 0)
  linkAttributes.write(writer, { name })
  writer.endMessage()
}

export function decodeLink({ view, start, end }: Message): Link | undefined {
  const attributes = linkAttributes.read(view, start + IFINFOMSG_LENGTH, end)
  if (attributes === undefined) return undefined
  const index = view.getInt32(start + 4, LITTLE_ENDIAN)
  return { index, name: attributes.name, kind: attributes.info?.kind }
}

export function writeNewLink(writer: Writer, name: string, kind: string): void {
  beginLinkMessage(writer, RTM_NEWLINK, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL)
  linkAttributes.write(writer, { name, info: { kind } })
  writer.endMessage()
}

export function writeDeleteLink(writer: Writer, name: string): void {
  beginLinkMessage(writer, RTM_DELLINK, NLM_F_ACK)
  linkAttributes.write(writer, { name })
  writer.endMessage()
}

export function writeAddressesRequest(writer: Writer, family: Family): void {
  writer.beginMessage(RTM_GETADDR, NLM_F_REQUEST | NLM_F_DUMP)
  writeAddressHeader(writer, { family, link: 0, flags: 0 })
  writer.endMessage()
}

export function decodeAddress({ view, start, end }: Message): LinkAddress | undefined {
  const attributes = addressAttributes.read(view, start + IFADDRMSG_LENGTH, end)
  // On a point-to-point link, IFA_ADDRESS is the other end.
  const address = attributes?.local ?? attributes?.address
  if (address === undefined) return undefined
  return { family: familyOf(address), link: view.getUint32(start + 4, LITTLE_ENDIAN), address: formatIp(address) }
}

/** Writes an operation on the addresses of a link as one message. */
export function writeLinkOp(writer: Writer, link: number, op: LinkOp, acknowledge: boolean): void {
  const address = parseAddress(op.address)
  const isAdded = op.op === 'addAddress'
  const flags = NLM_F_REQUEST | (isAdded ? NLM_F_CREATE | NLM_F_EXCL : 0) | (acknowledge ? NLM_F_ACK : 0)
  writer.beginMessage(isAdded ? RTM_NEWADDR : RTM_DELADDR, flags)
  // Nobody else can have a service's address: there is nothing to detect.
  writeAddressHeader(writer, { family: familyOf(address), link, flags: isAdded ? IFA_F_NODAD : 0 })
  addressAttributes.write(writer, { address, local: address })
  writer.endMessage()
}

function parseAddress(text: string): Bytes {
  const address = parseIp(text)
  if (address === undefined) throw new TypeError(`Cannot encode ${JSON.stringify(text)}: not an IP address`)
  return address
}

function beginLinkMessage(writer: Writer, type: number, flags: number): void {
  writer.beginMessage(type, NLM_F_REQUEST | flags)
  for (let word = 0; word < IFINFOMSG_LENGTH / 4; word++) writer.ne32(0)
}

function writeAddressHeader(writer: Writer, header: { family: Family; link: number; flags: number }): void {
  const { family, link, flags } = header
  writer.u8(family === 4 ? AF_INET : AF_INET6)
  writer.u8(family === 4 ? 32 : 128)
  writer.u8(flags)
  writer.u8(0)
  writer.ne32(link)
}
