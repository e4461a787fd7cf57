// What the kernel has of one kind, in tables of any family and of any program.

import type { Codec } from '../netlink/attributes.ts'
import { NetlinkConnection } from '../netlink/connection.ts'
import { decodeNetfilterMessage } from '../netlink/nfnetlink.ts'
import { NETLINK_NETFILTER, NLM_F_DUMP } from '../netlink/uapi/netlink.ts'
import { beginNftablesMessage, type MessageName } from './bytes/messages.ts'

/** NFPROTO_* of linux/netfilter.h. */
const FAMILIES: Readonly<Record<number, string>> = { 1: 'inet', 2: 'ip', 3: 'arp', 5: 'netdev', 7: 'bridge', 10: 'ip6' }

/** `make` gets the family as nft calls it; a number where it has no name here. What it makes undefined is left out. */
export function dumpAll<T, R>(
  message: MessageName,
  codec: Codec<T>,
  make: (attributes: T, family: string) => R | undefined,
): R[] {
  using netlink = new NetlinkConnection(NETLINK_NETFILTER)
  return netlink.dump(
    message,
    (writer) => {
      beginNftablesMessage(writer, message, 0, NLM_F_DUMP)
      writer.endMessage()
    },
    (answer) => {
      const attributes = decodeNetfilterMessage(codec, answer)
      const number = answer.view.getUint8(answer.start)
      return attributes === undefined ? undefined : make(attributes, FAMILIES[number] ?? String(number))
    },
  )
}
