// Which tables there are, of any family and of any program.

import { NetlinkClient } from '../netlink/client.ts'
import { decodeNetfilterMessage } from '../netlink/nfnetlink.ts'
import { NetlinkSocket } from '../netlink/socket.ts'
import { NETLINK_NETFILTER, NLM_F_DUMP } from '../netlink/uapi/netlink.ts'
import { Writer } from '../netlink/writer.ts'
import { beginNftablesMessage } from './bytes/messages.ts'
import { tableAttributes } from './bytes/table.ts'

export interface TableName {
  /** As nft calls it: `ip`, `inet`, `bridge`; a number where it has no name here. */
  readonly family: string
  readonly name: string
}

/** NFPROTO_* of linux/netfilter.h. */
const FAMILIES: Readonly<Record<number, string>> = { 1: 'inet', 2: 'ip', 3: 'arp', 5: 'netdev', 7: 'bridge', 10: 'ip6' }

export function listTableNames(): TableName[] {
  const socket = new NetlinkSocket(NETLINK_NETFILTER)
  try {
    const writer = new Writer(64)
    beginNftablesMessage(writer, 'getTable', 0, NLM_F_DUMP)
    writer.endMessage()
    return new NetlinkClient(socket.exchange).dump('list tables', writer.written(), (message) => {
      const name = decodeNetfilterMessage(tableAttributes, message)?.name
      const number = message.view.getUint8(message.start)
      return name === undefined ? undefined : { family: FAMILIES[number] ?? String(number), name }
    })
  } finally {
    socket.close()
  }
}
