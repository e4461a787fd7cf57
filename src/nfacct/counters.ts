// Objects of nfacct: counters that rules of iptables add to. net/netfilter/nfnetlink_acct.c

import { KernelError } from '../lib/errors.ts'
import { attr, be64number, cstring, nest, opt } from '../netlink/attributes.ts'
import { NetlinkConnection, type WriteRequest } from '../netlink/connection.ts'
import type { Message } from '../netlink/message.ts'
import { beginNetfilterMessage, decodeNetfilterMessage } from '../netlink/nfnetlink.ts'
import { NETLINK_NETFILTER, NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL } from '../netlink/uapi/netlink.ts'

// linux/netfilter/nfnetlink_acct.h, Linux 6.1
const NFNL_SUBSYS_ACCT = 7
const MESSAGES = { new: 0, get: 1, delete: 3 } as const
const NFACCT_NAME = 1
const NFACCT_PKTS = 2

const counterAttributes = nest({ name: attr(NFACCT_NAME, cstring), packets: opt(NFACCT_PKTS, be64number) })

/** Makes the counter unless it exists. False: this kernel has none. */
export function ensureCounter(name: string): boolean {
  try {
    using netlink = new NetlinkConnection(NETLINK_NETFILTER)
    netlink.request(`create counter ${name}`, message('new', name, NLM_F_CREATE | NLM_F_EXCL | NLM_F_ACK))
    return true
  } catch (error) {
    if (error instanceof KernelError) return error.errno === 'EEXIST'
    throw error
  }
}

/** Deletes the counter, unless a rule still uses it or it does not exist. */
export function deleteCounter(name: string): void {
  try {
    using netlink = new NetlinkConnection(NETLINK_NETFILTER)
    netlink.request(`delete counter ${name}`, message('delete', name, NLM_F_ACK))
  } catch (error) {
    if (!(error instanceof KernelError)) throw error
  }
}

/** How many packets it counted; 0 when it does not exist. */
export function readCounter(name: string): number {
  return findCounter(name) ?? 0
}

export function hasCounter(name: string): boolean {
  return findCounter(name) !== undefined
}

function findCounter(name: string): number | undefined {
  const decode = (answer: Message) => decodeNetfilterMessage(counterAttributes, answer)?.packets
  try {
    using netlink = new NetlinkConnection(NETLINK_NETFILTER)
    return netlink.get(`read counter ${name}`, message('get', name, 0), decode)
  } catch (error) {
    if (error instanceof KernelError) return undefined
    throw error
  }
}

function message(kind: keyof typeof MESSAGES, name: string, flags: number): WriteRequest {
  return (writer) => {
    beginNetfilterMessage(writer, { subsystem: NFNL_SUBSYS_ACCT, message: MESSAGES[kind], flags })
    counterAttributes.write(writer, { name })
    writer.endMessage()
  }
}
