// Objects of nfacct: counters that rules of iptables add to. net/netfilter/nfnetlink_acct.c

import { KernelError } from '../lib/errors.ts'
import { attr, be64number, cstring, nest, opt } from '../netlink/attributes.ts'
import { NetlinkClient } from '../netlink/client.ts'
import { beginNetfilterMessage, decodeNetfilterMessage } from '../netlink/nfnetlink.ts'
import { NetlinkSocket } from '../netlink/socket.ts'
import { NETLINK_NETFILTER, NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL } from '../netlink/uapi/netlink.ts'
import { Writer } from '../netlink/writer.ts'

// linux/netfilter/nfnetlink_acct.h, Linux 6.1
const NFNL_SUBSYS_ACCT = 7
const MESSAGES = { new: 0, get: 1, delete: 3 } as const
const NFACCT_NAME = 1
const NFACCT_PKTS = 2

const counterAttributes = nest({ name: attr(NFACCT_NAME, cstring), packets: opt(NFACCT_PKTS, be64number) })

/** Makes the counter unless it exists. False: this kernel has none. */
export function ensureCounter(name: string): boolean {
  const flags = NLM_F_CREATE | NLM_F_EXCL | NLM_F_ACK
  try {
    exchange(name, { message: 'new', flags }, (client, bytes) => client.request(`create counter ${name}`, bytes))
    return true
  } catch (error) {
    if (error instanceof KernelError) return error.errno === 'EEXIST'
    throw error
  }
}

/** Deletes the counter, unless a rule still uses it or it does not exist. */
export function deleteCounter(name: string): void {
  const message = { message: 'delete', flags: NLM_F_ACK } as const
  try {
    exchange(name, message, (client, bytes) => client.request(`delete counter ${name}`, bytes))
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
  try {
    return exchange(name, { message: 'get', flags: 0 }, (client, bytes) =>
      client.get(`read counter ${name}`, bytes, (answer) => decodeNetfilterMessage(counterAttributes, answer)?.packets),
    )
  } catch (error) {
    if (error instanceof KernelError) return undefined
    throw error
  }
}

function exchange<T>(
  name: string,
  { message, flags }: { readonly message: keyof typeof MESSAGES; readonly flags: number },
  send: (client: NetlinkClient, bytes: Uint8Array) => T,
): T {
  const writer = new Writer()
  beginNetfilterMessage(writer, { subsystem: NFNL_SUBSYS_ACCT, message: MESSAGES[message], flags })
  counterAttributes.write(writer, { name })
  writer.endMessage()
  const socket = new NetlinkSocket(NETLINK_NETFILTER)
  try {
    return send(new NetlinkClient(socket.exchange), writer.written())
  } finally {
    socket.close()
  }
}
