// Sets of ipset, which kube-proxy's ipvs mode makes for its rules of iptables.

import { existsSync } from 'node:fs'
import { KernelError } from '../lib/errors.ts'
import { NetlinkClient } from '../netlink/client.ts'
import { NetlinkSocket } from '../netlink/socket.ts'
import { NETLINK_NETFILTER } from '../netlink/uapi/netlink.ts'
import { Writer } from '../netlink/writer.ts'
import { writeDestroySet } from './bytes.ts'

/** Destroys those of the sets that are there and that no rule uses. Returns their names. */
export function destroySets(names: readonly string[]): string[] {
  // To ask for a set would make the kernel load the module.
  if (!existsSync('/sys/module/ip_set')) return []
  const socket = new NetlinkSocket(NETLINK_NETFILTER)
  try {
    const client = new NetlinkClient(socket.exchange)
    return names.filter((name) => destroySet(client, name))
  } finally {
    socket.close()
  }
}

function destroySet(client: NetlinkClient, name: string): boolean {
  const writer = new Writer()
  writeDestroySet(writer, name)
  try {
    client.request(`destroy the set ${name}`, writer.written())
    return true
  } catch (error) {
    if (error instanceof KernelError) return false
    throw error
  }
}
