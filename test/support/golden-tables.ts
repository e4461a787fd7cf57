// The golden inputs as planned tables of the nftables mode.

import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { systemClock } from '../../src/lib/clock.ts'
import type { Family } from '../../src/lib/ip.ts'
import type { NodeView } from '../../src/model/types.ts'
import { nftablesPlanner } from '../../src/modes/nftables/plan/planner.ts'
import type { TablePlanner } from '../../src/table-sync/table-planner.ts'
import { TableProgrammer } from '../../src/table-sync/table-programmer.ts'
import type { Table } from '../../src/nftables/types.ts'
import { node as addresses } from './addresses.ts'
import { aNodeView, cidr } from './arbitrary-views.ts'
import { MemoryTable } from './memory-table.ts'
import { viewsFromYaml } from './planned-views.ts'

const folder = new URL('../golden/', import.meta.url).pathname

/** The folders of test/golden with services as input; what a chart makes is there, too. */
export const goldenCases: readonly string[] = readdirSync(folder, { withFileTypes: true })
  .filter((entry) => entry.isDirectory() && existsSync(join(folder, entry.name, 'input.yaml')))
  .map((entry) => entry.name)

/** Those of which there are rules that the Go kube-proxy wrote: it knows nothing of our annotations. */
export const casesOfGo = goldenCases.filter((name) => existsSync(join(folder, name, 'iptables-go.save')))

/** The node on which the golden services run. */
export function goldenNode(family: Family): NodeView {
  return aNodeView({
    family,
    nodeName: addresses.name,
    nodeIp: addresses.ip[family],
    localDetector: { kind: 'cidr', cidrs: [cidr(family === 4 ? '10.1.0.0/16' : 'fd01::/48')] },
    nodePortAddresses: { kind: 'only', addresses: [addresses.ip[family]] },
    serviceCidrs: [cidr(family === 4 ? '10.2.0.0/16' : 'fd02::/112')],
  })
}

/** Of the nftables mode, where there are no services. */
export function planEmptyTable(family: Family): Table {
  const driver = new MemoryTable(family, nftablesPlanner.table)
  // A new table is made in one turn.
  void new TableProgrammer({ planner: nftablesPlanner, driver, clock: systemClock }).syncAll(goldenNode(family), [])
  return driver.table!
}

/** Of the nftables mode, or of another one that has a table. */
export function planGoldenTable(
  name: string,
  family: Family,
  planner: TablePlanner = nftablesPlanner,
  wish: Partial<NodeView> = {},
): Table {
  const driver = new MemoryTable(family, planner.table)
  const node = { ...goldenNode(family), ...wish }
  const views = viewsFromYaml(`${folder}${name}/input.yaml`, node)
  // A new table is made in one turn.
  void new TableProgrammer({ planner, driver, clock: systemClock }).syncAll(node, views)
  return driver.table!
}
