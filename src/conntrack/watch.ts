// Hears of connections as the kernel's connection tracker sees them begin, get an answer, and end.

import { drainSocket } from '../netlink/drain.ts'
import { messagesOf } from '../netlink/message.ts'
import { NetlinkSocket } from '../netlink/socket.ts'
import { NETLINK_NETFILTER, NLM_F_CREATE } from '../netlink/uapi/netlink.ts'
import { NFNL_SUBSYS_CTNETLINK } from '../netlink/uapi/nfnetlink.ts'
import { watchReadable } from '../system/readable.ts'
import { decodeFlow, type Flow } from './driver.ts'
import {
  IPCTNL_MSG_CT_DELETE,
  NFNLGRP_CONNTRACK_DESTROY,
  NFNLGRP_CONNTRACK_NEW,
  NFNLGRP_CONNTRACK_UPDATE,
} from './uapi.ts'
import { conntrackVocabulary } from './vocabulary.ts'

export interface FlowEvent {
  readonly kind: 'begun' | 'changed' | 'ended'
  readonly flow: Flow
}

/** Each event is a datagram of some 200 bytes; what does not fit is lost, and nobody is told of it. */
const RECEIVE_BUFFER = 4 << 20

/** Of this network namespace, until it is closed. For small clusters: the kernel sends every event of every connection. */
export function watchFlows(onEvent: (event: FlowEvent) => void): { close(): void } {
  const socket = new NetlinkSocket(NETLINK_NETFILTER, {
    receiveBuffer: RECEIVE_BUFFER,
    vocabulary: conntrackVocabulary,
    groups: [NFNLGRP_CONNTRACK_NEW, NFNLGRP_CONNTRACK_UPDATE, NFNLGRP_CONNTRACK_DESTROY],
  })
  const drain = () => {
    drainSocket(socket, (datagram) => {
      for (const message of messagesOf(datagram)) {
        if (message.type >> 8 !== NFNL_SUBSYS_CTNETLINK) continue
        const flow = decodeFlow(message)
        if (flow === undefined) continue
        const isEnd = (message.type & 0xff) === IPCTNL_MSG_CT_DELETE
        onEvent({ kind: isEnd ? 'ended' : (message.flags & NLM_F_CREATE) !== 0 ? 'begun' : 'changed', flow })
      }
    })
  }
  const readable = watchReadable(socket.fd, drain)
  return {
    close() {
      readable.close()
      socket.close()
    },
  }
}
