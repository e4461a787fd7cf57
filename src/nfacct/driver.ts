// Objects of nfacct: counters that rules of iptables add to.

import { KernelError } from '../lib/errors.ts'
import { decodePackets, writeCounterMessage } from './bytes.ts'
import { NETLINK_NETFILTER, NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL } from '../netlink/uapi/netlink.ts'
import { Writer } from '../netlink/writer.ts'
import { NetlinkClient } from '../netlink/client.ts'
import { NetlinkSocket } from '../netlink/socket.ts'

/** Makes the counter unless it is there. False: this kernel has none. */
export function ensureCounter(name: string): boolean {
  try {
    request(`create counter ${name}`, { message: 'new', flags: NLM_F_CREATE | NLM_F_EXCL | NLM_F_ACK }, name)
    return true
  } catch (error) {
    if (error instanceof KernelError) return error.errno === 'EEXIST'
    throw error
  }
}

/** Deletes the counter, unless a rule still uses it or it is not there. */
export function deleteCounter(name: string): void {
  try {
    request(`delete counter ${name}`, { message: 'delete', flags: NLM_F_ACK }, name)
  } catch (error) {
    if (!(error instanceof KernelError)) throw error
  }
}

/** How many packets it counted; 0 when it is not there. */
export function readCounter(name: string): number {
  return findCounter(name) ?? 0
}

export function hasCounter(name: string): boolean {
  return findCounter(name) !== undefined
}

function findCounter(name: string): number | undefined {
  const socket = new NetlinkSocket(NETLINK_NETFILTER)
  try {
    const writer = new Writer()
    writeCounterMessage(writer, { message: 'get', flags: 0 }, name)
    return new NetlinkClient(socket.exchange).get(`read counter ${name}`, writer.written(), decodePackets)
  } catch (error) {
    if (error instanceof KernelError) return undefined
    throw error
  } finally {
    socket.close()
  }
}

function request(op: string, message: { message: 'new' | 'delete'; flags: number }, name: string): void {
  const socket = new NetlinkSocket(NETLINK_NETFILTER)
  try {
    const writer = new Writer()
    writeCounterMessage(writer, message, name)
    new NetlinkClient(socket.exchange).request(op, writer.written())
  } finally {
    socket.close()
  }
}
