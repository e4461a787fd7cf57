// A packet of a flow on its way through a planned table of nftables.

import { formatIp, isLoopback, ipBytes } from '../../src/lib/ip.ts'

import type { Table } from '../../src/nftables/types.ts'
import { type Walk, walkTable } from '../../src/nftables/walk.ts'
import { type Flow, sources } from '../conformance/packet-flow.ts'
import { nodeAddresses } from './addresses.ts'

/** What the way depends on besides the packet. */
type Circumstances = Omit<Parameters<typeof walkTable>[2], 'isLocalAddress'> & { readonly sourcePort?: number }

/** The client's port of all flows that do not say. */
export const CLIENT_PORT = 40_000

export function walkFlow(
  table: Table,
  { from, to }: Flow,
  client: string,
  { sourcePort = CLIENT_PORT, ...circumstances }: Circumstances,
): Walk & { readonly met: readonly string[] } {
  const packet = {
    inputInterface: sources[from].iif,
    source: ipBytes(client),
    destination: ipBytes(to.address),
    protocol: to.protocol,
    sourcePort,
    destinationPort: to.port,
  }
  const walk = walkTable(table, packet, {
    isLocalAddress: (address) => isLoopback(address) || nodeAddresses.includes(formatIp(address)),
    ...circumstances,
  })
  return { ...walk, met: walk.steps.map(({ chain, rule }) => `${chain}: ${rule.text}`) }
}
