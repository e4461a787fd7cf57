// Follows connections: the kernel's connection tracker notifies when one begins, gets an answer, and ends.

import type { Message } from '../netlink/message.ts'
import { subscribe } from '../netlink/subscribe.ts'
import { NETLINK_NETFILTER, NLM_F_CREATE } from '../netlink/uapi/netlink.ts'
import { NFNL_SUBSYS_CTNETLINK } from '../netlink/uapi/nfnetlink.ts'
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

/** Some 20,000 events of 200 bytes: two seconds' at 5,000 connections a second, when a filter passes on two of each. */
const RECEIVE_BUFFER = 16 << 20

/** A pod may make connections faster than they can be read. Half of the time is for others. */
const SLICE_MS = 10

export interface FlowMessageOptions {
  readonly onMessage: (message: Message) => void
  /** Some were lost: more came than could be read. */
  readonly onLost?: () => void
  /** Has the kernel keep back what is not wanted, before the first event comes. */
  readonly filter?: (fd: number) => void
}

/** Of this network namespace, until it is closed. For small clusters: the kernel sends every event of every connection. */
export function watchFlows(onEvent: (event: FlowEvent) => void): { close(): void } {
  return watchFlowMessages({
    onMessage: (message) => {
      const flow = decodeFlow(message)
      if (flow !== undefined) onEvent({ kind: kindOf(message), flow })
    },
  })
}

/** The messages themselves. */
export function watchFlowMessages({ onMessage, onLost, filter }: FlowMessageOptions): { close(): void } {
  return subscribe(NETLINK_NETFILTER, {
    receiveBuffer: RECEIVE_BUFFER,
    sliceMs: SLICE_MS,
    vocabulary: conntrackVocabulary,
    groups: [NFNLGRP_CONNTRACK_NEW, NFNLGRP_CONNTRACK_UPDATE, NFNLGRP_CONNTRACK_DESTROY],
    prepare: ({ fd }) => filter?.(fd),
    onMessage: (message) => {
      if (message.type >> 8 === NFNL_SUBSYS_CTNETLINK) onMessage(message)
    },
    onLost,
  })
}

export function kindOf({ type, flags }: Message): FlowEvent['kind'] {
  if ((type & 0xff) === IPCTNL_MSG_CT_DELETE) return 'ended'
  return (flags & NLM_F_CREATE) !== 0 ? 'begun' : 'changed'
}
