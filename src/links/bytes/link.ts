// Links: struct ifinfomsg and its attributes. net/core/rtnetlink.c

import type { Bytes } from '../../lib/ip.ts'
import { LITTLE_ENDIAN } from '../../lib/endian.ts'
import type { Writer } from '../../netlink/writer.ts'
import type { Message } from '../../netlink/message.ts'
import { attr, cstring, ne32, nest, opt } from '../../netlink/attributes.ts'
import * as uapi from './uapi/rtnetlink.ts'
import { NLM_F_ACK, NLM_F_CREATE, NLM_F_DUMP, NLM_F_EXCL, NLM_F_REQUEST } from '../../netlink/uapi/netlink.ts'

/** family (1 byte), padding (1), type (2), index (4), flags (4), change (4) */
const IFINFOMSG_LENGTH = 16

const linkAttributes = nest({
  name: attr(uapi.IFLA_IFNAME, cstring),
  info: opt(uapi.IFLA_LINKINFO, nest({ kind: opt(uapi.IFLA_INFO_KIND, cstring) })),
})

const sizeAttributes = nest({ name: attr(uapi.IFLA_IFNAME, cstring), mtu: opt(uapi.IFLA_MTU, ne32) })

const linkFilter = nest({ mask: attr(uapi.IFLA_EXT_MASK, ne32) })

/** A link as the kernel describes it. */
export interface Link {
  readonly index: number
  readonly name: string
  /** `dummy`, `veth`; undefined for hardware. */
  readonly kind: string | undefined
}

/** A link, up as soon as it exists; a dummy and the peer of a cable are not. */
export interface NewLink {
  readonly name: string
  /** The index of the bridge that it is a port of. */
  readonly master?: number
  readonly kind: Dummy | Bridge | VethPeer
}

/** A link that leads nowhere: it has addresses, and nothing else. */
export interface Dummy {
  readonly type: 'dummy'
}

export interface Bridge {
  readonly type: 'bridge'
  /** Six bytes. Without an address of its own a bridge takes that of one of its ports, which come and go. */
  readonly hardwareAddress: Bytes
}

/** A cable, by its other end. */
export interface VethPeer {
  readonly type: 'veth'
  readonly peer: string
  /** A file descriptor of the network namespace that it is in; absent: that of the link. */
  readonly netns?: number
}

export function writeNewLink(writer: Writer, link: NewLink): void {
  beginLink(writer, {
    type: uapi.RTM_NEWLINK,
    flags: NLM_F_CREATE | NLM_F_EXCL,
    index: 0,
    up: link.kind.type !== 'dummy',
  })
  writeName(writer, link.name)
  if (link.master !== undefined) writeNumber(writer, uapi.IFLA_MASTER, link.master)
  if (link.kind.type === 'bridge') writeHardwareAddress(writer, link.kind.hardwareAddress)
  writer.beginNested(uapi.IFLA_LINKINFO)
  writeKind(writer, link.kind.type)
  if (link.kind.type === 'veth') writePeer(writer, link.kind)
  writer.end()
  writer.endMessage()
}

/** Sets a link up. */
export function writeLinkUp(writer: Writer, index: number): void {
  beginLink(writer, { type: uapi.RTM_NEWLINK, flags: 0, index, up: true })
  writer.endMessage()
}

export function writeDeleteLink(writer: Writer, name: string): void {
  beginLink(writer, { type: uapi.RTM_DELLINK, flags: 0, index: 0, up: false })
  writeName(writer, name)
  writer.endMessage()
}

/** Asks for one link. */
export function writeLinkRequest(writer: Writer, name: string): void {
  writer.beginMessage(uapi.RTM_GETLINK, NLM_F_REQUEST)
  writeHeader(writer, 0, false)
  writeName(writer, name)
  writer.endMessage()
}

/** Asks for all links, without the statistics that make up most of the answer. */
export function writeLinksRequest(writer: Writer): void {
  writer.beginMessage(uapi.RTM_GETLINK, NLM_F_REQUEST | NLM_F_DUMP)
  writeHeader(writer, 0, false)
  linkFilter.write(writer, { mask: uapi.RTEXT_FILTER_SKIP_STATS })
  writer.endMessage()
}

export function decodeLink({ type, view, start, end }: Message): Link | undefined {
  if (type !== uapi.RTM_NEWLINK || end - start < IFINFOMSG_LENGTH) return undefined
  const attributes = linkAttributes.read(view, start + IFINFOMSG_LENGTH, end)
  if (attributes === undefined) return undefined
  return { index: view.getInt32(start + 4, LITTLE_ENDIAN), name: attributes.name, kind: attributes.info?.kind }
}

/** How large the packets of a link may be. */
export interface LinkSize {
  readonly index: number
  readonly name: string
  readonly mtu: number
  readonly isUp: boolean
}

export function decodeLinkSize({ type, view, start, end }: Message): LinkSize | undefined {
  if (type !== uapi.RTM_NEWLINK || end - start < IFINFOMSG_LENGTH) return undefined
  const { name, mtu } = sizeAttributes.read(view, start + IFINFOMSG_LENGTH, end) ?? {}
  if (name === undefined || mtu === undefined) return undefined
  return {
    index: view.getInt32(start + 4, LITTLE_ENDIAN),
    name,
    mtu,
    isUp: (view.getUint32(start + 8, LITTLE_ENDIAN) & uapi.IFF_UP) !== 0,
  }
}

function writePeer(writer: Writer, { peer, netns }: VethPeer): void {
  writer.beginNested(uapi.IFLA_INFO_DATA)
  writer.beginNested(uapi.VETH_INFO_PEER)
  // The kernel sets up no end of a cable whose other end is not there yet.
  writeHeader(writer, 0, false)
  writeName(writer, peer)
  if (netns !== undefined) writeNumber(writer, uapi.IFLA_NET_NS_FD, netns)
  writer.end()
  writer.end()
}

function beginLink(writer: Writer, head: { type: number; flags: number; index: number; up: boolean }): void {
  writer.beginMessage(head.type, NLM_F_REQUEST | NLM_F_ACK | head.flags)
  writeHeader(writer, head.index, head.up)
}

function writeHeader(writer: Writer, index: number, up: boolean): void {
  const flags = up ? uapi.IFF_UP : 0
  for (const word of [0, index, flags, flags]) writer.ne32(word)
}

function writeKind(writer: Writer, kind: string): void {
  writer.begin(uapi.IFLA_INFO_KIND)
  cstring.write(writer, kind)
  writer.end()
}

function writeName(writer: Writer, name: string): void {
  writer.begin(uapi.IFLA_IFNAME)
  cstring.write(writer, name)
  writer.end()
}

function writeHardwareAddress(writer: Writer, address: Bytes): void {
  writer.begin(uapi.IFLA_ADDRESS)
  writer.raw(address)
  writer.end()
}

function writeNumber(writer: Writer, type: number, value: number): void {
  writer.begin(type)
  writer.ne32(value)
  writer.end()
}
