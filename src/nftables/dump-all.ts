// What the kernel has of one kind, in tables of any family and of any program.

import type { Codec } from '../netlink/attributes.ts'
import { NetlinkClient } from '../netlink/client.ts'
import { decodeNetfilterMessage } from '../netlink/nfnetlink.ts'
import { NetlinkSocket } from '../netlink/socket.ts'
import { NETLINK_NETFILTER, NLM_F_DUMP } from '../netlink/uapi/netlink.ts'
import { Writer } from '../netlink/writer.ts'
import { beginNftablesMessage, type MessageName } from './bytes/messages.ts'

/** NFPROTO_* of linux/netfilter.h. */
const FAMILIES: Readonly<Record<number, string>> = { 1: 'inet', 2: 'ip', 3: 'arp', 5: 'netdev', 7: 'bridge', 10: 'ip6' }

/** `make` gets the family as nft calls it; a number where it has no name here. What it makes undefined is left out. */
export function dumpAll<T, R>(
  message: MessageName,
  codec: Codec<T>,
  make: (attributes: T, family: string) => R | undefined,
): R[] {
  const socket = new NetlinkSocket(NETLINK_NETFILTER)
  try {
    const writer = new Writer(64)
    beginNftablesMessage(writer, message, 0, NLM_F_DUMP)
    writer.endMessage()
    return new NetlinkClient(socket.exchange).dump(message, writer.written(), (answer) => {
      const attributes = decodeNetfilterMessage(codec, answer)
      const number = answer.view.getUint8(answer.start)
      return attributes === undefined ? undefined : make(attributes, FAMILIES[number] ?? String(number))
    })
  } finally {
    socket.close()
  }
}
