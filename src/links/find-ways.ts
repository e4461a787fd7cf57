// By which link, and how large, packets of this machine go to an address: what `ip route get` says.

import { KernelError, messageOf } from '../lib/errors.ts'
import { formatIp, type Bytes } from '../lib/ip.ts'
import { NetlinkClient } from '../netlink/client.ts'
import { NetlinkSocket } from '../netlink/socket.ts'
import { NETLINK_ROUTE } from '../netlink/uapi/netlink.ts'
import { Writer } from '../netlink/writer.ts'
import { decodeLinkSize, type LinkSize, writeLinksRequest } from './bytes/link.ts'
import { decodeFoundRoute, writeRouteRequest } from './bytes/route.ts'
import { RTN_LOCAL, RTN_UNICAST } from './bytes/uapi/rtnetlink.ts'

/** A way that packets can take, or why there is none. */
export type Way =
  | { readonly kind: 'link'; readonly link: string; readonly mtu: number; readonly via?: Bytes | undefined }
  /** To this machine itself. */
  | { readonly kind: 'local' }
  | { readonly kind: 'none'; readonly error: string }

/** The same order. */
export function findWays(addresses: readonly Bytes[]): Way[] {
  const socket = new NetlinkSocket(NETLINK_ROUTE)
  try {
    const client = new NetlinkClient(socket.exchange)
    const writer = new Writer(64)
    writeLinksRequest(writer)
    const links = new Map(client.dump('list links', writer.written(), decodeLinkSize).map((link) => [link.index, link]))
    return addresses.map((address) => findWay(client, links, address))
  } finally {
    socket.close()
  }
}

function findWay(client: NetlinkClient, links: ReadonlyMap<number, LinkSize>, to: Bytes): Way {
  const writer = new Writer(64)
  writeRouteRequest(writer, to)
  try {
    const { type, link, via, mtu } = client.get(`find a route to ${formatIp(to)}`, writer.written(), decodeFoundRoute)
    if (type === RTN_LOCAL) return { kind: 'local' }
    const found = links.get(link ?? 0)
    if (type !== RTN_UNICAST || found === undefined)
      return { kind: 'none', error: 'its route drops what is sent there' }
    return { kind: 'link', link: found.name, mtu: Math.min(found.mtu, mtu ?? found.mtu), via }
  } catch (error) {
    if (!(error instanceof KernelError)) throw error
    return { kind: 'none', error: REASONS[error.errno] ?? messageOf(error) }
  }
}

/** What the kernel answers where packets would not leave. */
const REASONS: Readonly<Record<string, string>> = {
  ENETUNREACH: 'there is no route',
  EHOSTUNREACH: 'its route says unreachable',
  EINVAL: 'its route is a blackhole',
  EACCES: 'its route says prohibit',
}
