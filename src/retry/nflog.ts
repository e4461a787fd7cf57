// Receives the packets that rules log to a group of nfnetlink_log.

import { KernelError } from '../lib/errors.ts'
import type { Bytes } from '../lib/ip.ts'
import { NetlinkClient } from '../netlink/client.ts'
import { subscribe } from '../netlink/subscribe.ts'
import { NETLINK_NETFILTER } from '../netlink/uapi/netlink.ts'
import { Writer } from '../netlink/writer.ts'
import { decodeLoggedPacket, nflogVocabulary, writeBind, writeDelivery } from './nflog-messages.ts'

export interface PacketLog {
  /** The group that was free. */
  readonly group: number
  close(): void
}

export interface PacketLogOptions {
  readonly onPacket: (packet: Bytes) => void
  /** The kernel dropped packets because the receive buffer was full. */
  readonly onLost: () => void
}

/** Other programs choose small numbers. Another proxy on this machine takes the next. */
const FIRST_GROUP = 10256
const GROUPS = 16

/** Some hundred packets. Losing more than that does no harm: those clients fail as they would without the proxy. */
const RECEIVE_BUFFER = 256 << 10
const SNAPLEN = 128

/** Binds to a group of this network namespace. */
export function openPacketLog({ onPacket, onLost }: PacketLogOptions): PacketLog {
  let group = 0
  const { close } = subscribe(NETLINK_NETFILTER, {
    receiveBuffer: RECEIVE_BUFFER,
    vocabulary: nflogVocabulary,
    prepare: (socket) => {
      group = bindGroup(new NetlinkClient(socket.exchange))
    },
    onMessage: (message) => {
      const packet = decodeLoggedPacket(message)
      if (packet !== undefined) onPacket(packet)
    },
    onLost,
  })
  return { group, close }
}

function bindGroup(client: NetlinkClient): number {
  const writer = new Writer()
  for (let group = FIRST_GROUP; ; group++) {
    try {
      writer.reset()
      writeBind(writer, group)
      client.request(`listen to nflog group ${group}`, writer.written())
    } catch (error) {
      const isTaken = error instanceof KernelError && error.errno === 'EBUSY'
      if (!isTaken || group === FIRST_GROUP + GROUPS - 1) throw error
      continue
    }
    writer.reset()
    writeDelivery(writer, group, SNAPLEN)
    client.request(`set up nflog group ${group}`, writer.written())
    return group
  }
}
