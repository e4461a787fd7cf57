// Destroying sets of ipset, which rules of iptables look into. net/netfilter/ipset/ip_set_core.c

import { existsSync } from 'node:fs'
import { KernelError } from '../lib/errors.ts'
import { attr, cstring, nest, u8 } from '../netlink/attributes.ts'
import { NetlinkConnection } from '../netlink/connection.ts'
import { beginNetfilterMessage } from '../netlink/nfnetlink.ts'
import { NETLINK_NETFILTER, NLM_F_ACK, NLM_F_EXCL } from '../netlink/uapi/netlink.ts'

// linux/netfilter/ipset/ip_set.h, Linux 6.1
const NFNL_SUBSYS_IPSET = 6
const IPSET_CMD_DESTROY = 3
const IPSET_ATTR_PROTOCOL = 1
const IPSET_ATTR_SETNAME = 2
/** Every kernel since 2.6.39 takes it. */
const IPSET_PROTOCOL = 6

const setAttributes = nest({ protocol: attr(IPSET_ATTR_PROTOCOL, u8), name: attr(IPSET_ATTR_SETNAME, cstring) })

/** Destroys those of the sets that exist and that no rule uses. Returns their names. */
export function destroySets(names: readonly string[]): string[] {
  // To ask for a set would make the kernel load the module.
  if (!existsSync('/sys/module/ip_set')) return []
  using netlink = new NetlinkConnection(NETLINK_NETFILTER)
  return names.filter((name) => destroySet(netlink, name))
}

function destroySet(netlink: NetlinkConnection, name: string): boolean {
  // Without NLM_F_EXCL the kernel acknowledges where there is no such set.
  const flags = NLM_F_ACK | NLM_F_EXCL
  try {
    netlink.request(`destroy the set ${name}`, (writer) => {
      beginNetfilterMessage(writer, { subsystem: NFNL_SUBSYS_IPSET, message: IPSET_CMD_DESTROY, flags })
      setAttributes.write(writer, { protocol: IPSET_PROTOCOL, name })
      writer.endMessage()
    })
    return true
  } catch (error) {
    if (error instanceof KernelError) return false
    throw error
  }
}
