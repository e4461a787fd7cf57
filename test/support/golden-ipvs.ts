// The golden inputs as the ipvs mode plans them: virtual servers, addresses, and the table around them.

import { systemClock } from '../../src/lib/clock.ts'
import type { Family } from '../../src/lib/ip.ts'
import { ipvsPlanner } from '../../src/modes/ipvs/plan/planner.ts'
import { IpvsProgrammer } from '../../src/modes/ipvs/programmer.ts'
import { FamilyAudit } from '../../src/modes/ipvs/table-watch.ts'
import type { Table } from '../../src/nftables/types.ts'
import { formatServers } from '../../src/ipvs/format.ts'
import { nodeAddresses } from './addresses.ts'
import { goldenNode } from './golden-tables.ts'
import { MemoryIpvs, MemoryLink } from './memory-ipvs.ts'
import { MemoryTable } from './memory-table.ts'
import { viewsFromYaml } from './planned-views.ts'

export interface GoldenIpvs {
  readonly table: Table
  /** As `ipvsadm -Sn` prints them. */
  readonly servers: string
  /** Of the link, in order. */
  readonly addresses: readonly string[]
}

export async function planGoldenIpvs(name: string, family: Family): Promise<GoldenIpvs> {
  const rules = new MemoryTable(family, ipvsPlanner.table)
  const node = goldenNode(family)
  const servers = new MemoryIpvs()
  const link = new MemoryLink(['127.0.0.1', '::1', ...nodeAddresses])
  const programmer = new IpvsProgrammer({
    family,
    servers,
    link,
    rules,
    clock: systemClock,
    scheduler: 'rr',
    excludeCidrs: [],
    drainLimitMs: 0,
    audit: new FamilyAudit(),
    onDrained() {},
    onError() {},
  })
  const input = new URL(`../golden/${name}/input.yaml`, import.meta.url).pathname
  await programmer.syncAll(node, viewsFromYaml(input, node))
  programmer.close()
  return { table: rules.table!, servers: formatServers(servers.read(family)), addresses: [...link.own].sort() }
}
