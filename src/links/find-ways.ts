// By which link, and how large, packets of this machine go to an address: what `ip route get` says.

import { KernelError, messageOf } from '../lib/errors.ts'
import { formatIp, type Bytes } from '../lib/ip.ts'
import { NetlinkConnection } from '../netlink/connection.ts'
import { NETLINK_ROUTE } from '../netlink/uapi/netlink.ts'
import { decodeLinkSize, type LinkSize, writeLinksRequest } from './bytes/link.ts'
import { decodeFoundRoute, type RouteQuestion, writeRouteRequest } from './bytes/route.ts'
import { RTN_LOCAL, RTN_UNICAST } from './bytes/uapi/rtnetlink.ts'

/** A way that packets can take, or why there is none. */
export type Way =
  | { readonly kind: 'link'; readonly link: string; readonly mtu: number; readonly via?: Bytes | undefined }
  /** To this machine itself. */
  | { readonly kind: 'local' }
  | { readonly kind: 'none'; readonly error: string }

/** What rules of policy routing see of packets; absent: this machine sends them. */
export interface Traveller {
  readonly from?: Bytes | undefined
  /** By which they come in. */
  readonly link?: string | undefined
  readonly mark?: number | undefined
}

/** The same order. */
export function findWays(addresses: readonly Bytes[], { from, link, mark }: Traveller = {}): Way[] {
  using netlink = new NetlinkConnection(NETLINK_ROUTE)
  const all = netlink.dump('list links', writeLinksRequest, decodeLinkSize)
  const links = new Map(all.map((each) => [each.index, each]))
  const input = link === undefined ? undefined : all.find(({ name }) => name === link)?.index
  return addresses.map((to) => findWay(netlink, links, { to, from, mark, link: input }))
}

function findWay(netlink: NetlinkConnection, links: ReadonlyMap<number, LinkSize>, question: RouteQuestion): Way {
  const op = `find a route to ${formatIp(question.to)}`
  try {
    const { type, link, via, mtu } = netlink.get(op, (writer) => writeRouteRequest(writer, question), decodeFoundRoute)
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
