// Which neighbours do not answer: what `ip neigh` calls FAILED, or INCOMPLETE while the kernel still asks.

import type { Bytes } from '../lib/ip.ts'
import { NetlinkClient } from '../netlink/client.ts'
import { NetlinkSocket } from '../netlink/socket.ts'
import { NETLINK_ROUTE } from '../netlink/uapi/netlink.ts'
import { Writer } from '../netlink/writer.ts'
import { decodeNeighbour, writeNeighboursRequest } from './bytes/neighbour.ts'
import { NUD_FAILED, NUD_INCOMPLETE } from './bytes/uapi/rtnetlink.ts'

/** Addresses that the kernel has looked for on some link (ARP, ND) without an answer. */
export function findSilentNeighbours(): ReadonlySet<Bytes> {
  const socket = new NetlinkSocket(NETLINK_ROUTE)
  try {
    const writer = new Writer(64)
    writeNeighboursRequest(writer)
    const all = new NetlinkClient(socket.exchange).dump('list neighbours', writer.written(), decodeNeighbour)
    return new Set(
      all.filter(({ state }) => state === NUD_FAILED || state === NUD_INCOMPLETE).map(({ address }) => address),
    )
  } finally {
    socket.close()
  }
}
