// Destinations: IPVS_CMD_ATTR_DEST. The kernel's counterpart is ip_vs_genl_parse_dest in ip_vs_ctl.c.

import type { Family } from '../../lib/ip.ts'
import type { Destination, DestinationId, DestinationState } from '../types.ts'
import { attr, be16, type Codec, type Infer, mapped, ne32, nest, opt } from '../../netlink/attributes.ts'
import * as uapi from './uapi.ts'
import { LITTLE_ENDIAN } from '../../lib/endian.ts'
import { addressFamily, addressUnion, decodeAddress, encodeAddress } from './address.ts'

const ne64: Codec<bigint> = {
  write: (writer, value) => {
    const at = writer.reserve(8)
    writer.view.setBigUint64(at, value, LITTLE_ENDIAN)
  },
  read: (view, start, end) => (end - start >= 8 ? view.getBigUint64(start, LITTLE_ENDIAN) : undefined),
}

/** Older kernels count in 32 bits only, but for bytes. */
const stats = nest({
  connections: opt(uapi.IPVS_STATS_ATTR_CONNS, mapped(ne32, Number, BigInt)),
  packetsIn: opt(uapi.IPVS_STATS_ATTR_INPKTS, mapped(ne32, Number, BigInt)),
  packetsOut: opt(uapi.IPVS_STATS_ATTR_OUTPKTS, mapped(ne32, Number, BigInt)),
  bytesIn: opt(uapi.IPVS_STATS_ATTR_INBYTES, ne64),
  bytesOut: opt(uapi.IPVS_STATS_ATTR_OUTBYTES, ne64),
})
const stats64 = nest({
  connections: opt(uapi.IPVS_STATS_ATTR_CONNS, ne64),
  packetsIn: opt(uapi.IPVS_STATS_ATTR_INPKTS, ne64),
  packetsOut: opt(uapi.IPVS_STATS_ATTR_OUTPKTS, ne64),
  bytesIn: opt(uapi.IPVS_STATS_ATTR_INBYTES, ne64),
  bytesOut: opt(uapi.IPVS_STATS_ATTR_OUTBYTES, ne64),
})

export const destinationAttributes = nest({
  address: attr(uapi.IPVS_DEST_ATTR_ADDR, addressUnion),
  port: attr(uapi.IPVS_DEST_ATTR_PORT, be16),
  forwarding: opt(uapi.IPVS_DEST_ATTR_FWD_METHOD, ne32),
  weight: opt(uapi.IPVS_DEST_ATTR_WEIGHT, ne32),
  upperThreshold: opt(uapi.IPVS_DEST_ATTR_U_THRESH, ne32),
  lowerThreshold: opt(uapi.IPVS_DEST_ATTR_L_THRESH, ne32),
  activeConnections: opt(uapi.IPVS_DEST_ATTR_ACTIVE_CONNS, ne32),
  inactiveConnections: opt(uapi.IPVS_DEST_ATTR_INACT_CONNS, ne32),
  stats: opt(uapi.IPVS_DEST_ATTR_STATS, stats),
  family: opt(uapi.IPVS_DEST_ATTR_ADDR_FAMILY, addressFamily),
  stats64: opt(uapi.IPVS_DEST_ATTR_STATS64, stats64),
})

export type DestinationAttributes = Infer<typeof destinationAttributes>

export function destinationIdAttributes({ address, port }: DestinationId, family: Family): DestinationAttributes {
  return { address: encodeAddress(address), port, family }
}

export function attributesOfDestination(destination: Destination, family: Family): DestinationAttributes {
  return {
    ...destinationIdAttributes(destination, family),
    forwarding: uapi.IP_VS_CONN_F_MASQ,
    weight: destination.weight,
    // No limits on the number of connections; the kernel wants that said.
    upperThreshold: 0,
    lowerThreshold: 0,
  }
}

export function destinationFromAttributes(attributes: DestinationAttributes, family: Family): DestinationState {
  const counted = attributes.stats64 ?? attributes.stats
  return {
    address: decodeAddress(attributes.address, attributes.family ?? family),
    port: attributes.port,
    weight: attributes.weight ?? 0,
    isNat: ((attributes.forwarding ?? 0) & uapi.IP_VS_CONN_F_FWD_MASK) === uapi.IP_VS_CONN_F_MASQ,
    activeConnections: attributes.activeConnections ?? 0,
    inactiveConnections: attributes.inactiveConnections ?? 0,
    connections: counted?.connections ?? 0n,
    packetsIn: counted?.packetsIn ?? 0n,
    packetsOut: counted?.packetsOut ?? 0n,
    bytesIn: counted?.bytesIn ?? 0n,
    bytesOut: counted?.bytesOut ?? 0n,
  }
}
