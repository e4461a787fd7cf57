// Routes: struct rtmsg and its attributes.

import type { Bytes, Cidr, Family } from '../../lib/ip.ts'
import { bytes, ne32, nest, opt } from '../../netlink/attributes.ts'
import type { Message } from '../../netlink/message.ts'
import type { Writer } from '../../netlink/writer.ts'
import * as uapi from './uapi/rtnetlink.ts'
import { NLM_F_ACK, NLM_F_CREATE, NLM_F_DUMP, NLM_F_REPLACE, NLM_F_REQUEST } from '../../netlink/uapi/netlink.ts'
import { ADDRESS_FAMILY } from './address-family.ts'

/** family, length of destination, of source, TOS, table, protocol, scope, type (1 byte each), flags (4) */
const RTMSG_LENGTH = 12
/** struct rtnexthop: length (2), flags (1), weight less 1 (1), link (4) */
const RTNEXTHOP_LENGTH = 8

/** A route. It replaces one to the same destination. */
export interface NewRoute {
  readonly to: Cidr
  /** The index of the link; `unreachable` refuses what is sent there. */
  readonly link: number | 'unreachable'
  /** Routers on that link that share the traffic; none: the destination itself is on the link. */
  readonly via: readonly Bytes[]
}

export function writeNewRoute(writer: Writer, { to, link, via }: NewRoute): void {
  writer.beginMessage(uapi.RTM_NEWROUTE, NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE)
  const scope =
    via.length === 0 && to.family === 4 && link !== 'unreachable' ? uapi.RT_SCOPE_LINK : uapi.RT_SCOPE_UNIVERSE
  const type = link === 'unreachable' ? uapi.RTN_UNREACHABLE : uapi.RTN_UNICAST
  writeHeader(writer, [ADDRESS_FAMILY[to.family], to.prefix, 0, 0, uapi.RT_TABLE_MAIN, uapi.RTPROT_STATIC, scope, type])
  writer.begin(uapi.RTA_DST)
  writer.raw(to.network)
  writer.end()
  if (link !== 'unreachable') writeHops(writer, link, via)
  writer.endMessage()
}

function writeHops(writer: Writer, link: number, via: readonly Bytes[]): void {
  const [only] = via
  if (via.length > 1) return writeMultipath(writer, link, via)
  writer.begin(uapi.RTA_OIF)
  writer.ne32(link)
  writer.end()
  if (only !== undefined) writeGateway(writer, only)
}

function writeMultipath(writer: Writer, link: number, via: readonly Bytes[]): void {
  writer.begin(uapi.RTA_MULTIPATH)
  for (const gateway of via) {
    writer.ne16(RTNEXTHOP_LENGTH + 4 + gateway.length)
    writer.u8(0)
    writer.u8(0)
    writer.ne32(link)
    writeGateway(writer, gateway)
  }
  writer.end()
}

function writeGateway(writer: Writer, gateway: Bytes): void {
  writer.begin(uapi.RTA_GATEWAY)
  writer.raw(gateway)
  writer.end()
}

/** Asks for all routes of a family. */
export function writeRoutesRequest(writer: Writer, family: Family): void {
  writer.beginMessage(uapi.RTM_GETROUTE, NLM_F_REQUEST | NLM_F_DUMP)
  writeHeader(writer, [ADDRESS_FAMILY[family], 0, 0, 0, 0, 0, 0, 0])
  writer.endMessage()
}

const routeAttributes = nest({ to: opt(uapi.RTA_DST, bytes) })

/** Where a route leads to; undefined for the default route. */
export function decodeRouteDestination({ view, start, end }: Message): Cidr | undefined {
  const network = routeAttributes.read(view, start + RTMSG_LENGTH, end)?.to
  if (network === undefined) return undefined
  return { family: network.length === 4 ? 4 : 6, network, prefix: view.getUint8(start + 1) }
}

/** What rules of policy routing see of a packet. */
export interface RouteQuestion {
  readonly to: Bytes
  readonly from?: Bytes | undefined
  /** The index of the link by which it comes in; absent: this machine sends it. */
  readonly link?: number | undefined
  readonly mark?: number | undefined
}

/** Asks by which route the kernel would send a packet. */
export function writeRouteRequest(writer: Writer, { to, from, link, mark }: RouteQuestion): void {
  writer.beginMessage(uapi.RTM_GETROUTE, NLM_F_REQUEST)
  const fromBits = (from?.length ?? 0) * 8
  writeHeader(writer, [ADDRESS_FAMILY[to.length === 4 ? 4 : 6], to.length * 8, fromBits, 0, 0, 0, 0, 0])
  writer.begin(uapi.RTA_DST)
  writer.raw(to)
  writer.end()
  if (from !== undefined) {
    writer.begin(uapi.RTA_SRC)
    writer.raw(from)
    writer.end()
  }
  for (const [attribute, value] of [
    [uapi.RTA_IIF, link],
    [uapi.RTA_MARK, mark],
  ] as const) {
    if (value === undefined) continue
    writer.begin(attribute)
    writer.ne32(value)
    writer.end()
  }
  writer.endMessage()
}

/** A route that the kernel has found. */
export interface FoundRoute {
  /** RTN_*: unicast, local, blackhole. */
  readonly type: number
  /** The index of the link. */
  readonly link: number | undefined
  /** The router; undefined: the destination is on the link. */
  readonly via: Bytes | undefined
  /** Where the route, or what the kernel has found out about the way, allows less than the link. */
  readonly mtu: number | undefined
}

const foundAttributes = nest({
  link: opt(uapi.RTA_OIF, ne32),
  via: opt(uapi.RTA_GATEWAY, bytes),
  metrics: opt(uapi.RTA_METRICS, nest({ mtu: opt(uapi.RTAX_MTU, ne32) })),
})

export function decodeFoundRoute({ type, view, start, end }: Message): FoundRoute | undefined {
  if (type !== uapi.RTM_NEWROUTE || end - start < RTMSG_LENGTH) return undefined
  const { link, via, metrics } = foundAttributes.read(view, start + RTMSG_LENGTH, end) ?? {}
  return { type: view.getUint8(start + 7), link, via, mtu: metrics?.mtu || undefined }
}

function writeHeader(writer: Writer, fields: readonly number[]): void {
  for (const field of fields) writer.u8(field)
  writer.ne32(0)
}
