// Which neighbours do not answer: what `ip neigh` calls FAILED, or INCOMPLETE while the kernel still asks.

import type { Bytes } from '../lib/ip.ts'
import { NetlinkConnection } from '../netlink/connection.ts'
import { NETLINK_ROUTE } from '../netlink/uapi/netlink.ts'
import { decodeNeighbour, writeNeighboursRequest } from './bytes/neighbour.ts'
import { NUD_FAILED, NUD_INCOMPLETE } from './bytes/uapi/rtnetlink.ts'

/** Addresses that the kernel has looked for on some link (ARP, ND) without an answer. */
export function findSilentNeighbours(): ReadonlySet<Bytes> {
  using netlink = new NetlinkConnection(NETLINK_ROUTE)
  const all = netlink.dump('list neighbours', writeNeighboursRequest, decodeNeighbour)
  return new Set(
    all.filter(({ state }) => state === NUD_FAILED || state === NUD_INCOMPLETE).map(({ address }) => address),
  )
}
