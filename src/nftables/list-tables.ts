// Which tables there are, of any family and of any program.

import { NetlinkClient } from '../netlink/client.ts'
import { NetlinkSocket } from '../netlink/socket.ts'
import { NETLINK_NETFILTER, NLM_F_DUMP, NLM_F_REQUEST } from '../netlink/uapi/netlink.ts'
import { NFNETLINK_V0 } from '../netlink/uapi/nfnetlink.ts'
import { Writer } from '../netlink/writer.ts'
import { messageType, NFGENMSG_LENGTH } from './bytes/messages.ts'
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
    writer.beginMessage(messageType('getTable'), NLM_F_REQUEST | NLM_F_DUMP)
    writer.u8(0)
    writer.u8(NFNETLINK_V0)
    writer.be16(0)
    writer.endMessage()
    return new NetlinkClient(socket.exchange).dump('list tables', writer.written(), ({ view, start, end }) => {
      const name = tableAttributes.read(view, start + NFGENMSG_LENGTH, end)?.name
      const number = view.getUint8(start)
      return name === undefined ? undefined : { family: FAMILIES[number] ?? String(number), name }
    })
  } finally {
    socket.close()
  }
}
