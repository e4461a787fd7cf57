// Virtual servers: IPVS_CMD_ATTR_SERVICE. The kernel's counterpart is ip_vs_genl_parse_service in ip_vs_ctl.c.

import type { ServerId, VirtualServer } from '../types.ts'
import { attr, be16, type Codec, cstring, type Infer, ne32, nest, opt } from '../../netlink/attributes.ts'
import * as uapi from './uapi.ts'
import { LITTLE_ENDIAN } from '../../lib/endian.ts'
import { addressFamily, addressUnion, decodeAddress, encodeAddress, transport } from './address.ts'

/** struct ip_vs_flags: the flags, and which of them are meant. */
const serverFlags: Codec<{ readonly flags: number; readonly mask: number }> = {
  write(writer, { flags, mask }) {
    writer.ne32(flags)
    writer.ne32(mask)
  },
  read: (view, start, end) =>
    end - start >= 8
      ? { flags: view.getUint32(start, LITTLE_ENDIAN), mask: view.getUint32(start + 4, LITTLE_ENDIAN) }
      : undefined,
}

/** Servers by firewall mark have no address, and other protocols are not ours either: they cannot be read with this. */
export const serverAttributes = nest({
  family: attr(uapi.IPVS_SVC_ATTR_AF, addressFamily),
  protocol: attr(uapi.IPVS_SVC_ATTR_PROTOCOL, transport),
  address: attr(uapi.IPVS_SVC_ATTR_ADDR, addressUnion),
  port: attr(uapi.IPVS_SVC_ATTR_PORT, be16),
  scheduler: opt(uapi.IPVS_SVC_ATTR_SCHED_NAME, cstring),
  flags: opt(uapi.IPVS_SVC_ATTR_FLAGS, serverFlags),
  timeoutSeconds: opt(uapi.IPVS_SVC_ATTR_TIMEOUT, ne32),
  netmask: opt(uapi.IPVS_SVC_ATTR_NETMASK, ne32),
})

export type ServerAttributes = Infer<typeof serverAttributes>

/** What names a server in commands about it and about its destinations. */
export function serverIdAttributes({ family, protocol, address, port }: ServerId): ServerAttributes {
  return { family, protocol, address: encodeAddress(address), port }
}

export function attributesOfServer(server: VirtualServer): ServerAttributes {
  const { family, scheduler, schedulerFlags, persistenceSeconds } = server
  const persistent = persistenceSeconds === undefined ? 0 : uapi.IP_VS_SVC_F_PERSISTENT
  return {
    ...serverIdAttributes(server),
    scheduler,
    flags: { flags: persistent | (schedulerFlags & uapi.IP_VS_SVC_F_SCHED_FLAGS), mask: 0xffffffff },
    timeoutSeconds: persistenceSeconds ?? 0,
    // Every client for itself: an IPv4 mask, an IPv6 prefix length.
    netmask: family === 4 ? 0xffffffff : 128,
  }
}

export function serverFromAttributes(attributes: ServerAttributes): VirtualServer {
  const { family, protocol, address, port, scheduler = '', timeoutSeconds } = attributes
  const flags = attributes.flags?.flags ?? 0
  return {
    family,
    protocol,
    address: decodeAddress(address, family),
    port,
    scheduler,
    schedulerFlags: flags & uapi.IP_VS_SVC_F_SCHED_FLAGS,
    persistenceSeconds: (flags & uapi.IP_VS_SVC_F_PERSISTENT) === 0 ? undefined : timeoutSeconds,
  }
}
