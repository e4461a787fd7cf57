// The golden inputs as planned tables of the userspace mode. Its doors have ports in the order in which they are asked for.

import { systemClock } from '../../src/lib/clock.ts'
import type { Family } from '../../src/lib/ip.ts'
import type { ServicePortView } from '../../src/model/types.ts'
import type { Entrance } from '../../src/modes/userspace/entrance.ts'
import { USERSPACE_TABLE, userspaceMode } from '../../src/modes/userspace/mode.ts'
import type { FindDoor } from '../../src/modes/userspace/service.ts'
import { NftablesProgrammer } from '../../src/proxy/nftables-programmer.ts'
import { applyOps } from '../../src/state/nftables/apply-ops.ts'
import { nftFamily } from '../../src/state/nftables/language.ts'
import type { Op, Table } from '../../src/state/nftables/types.ts'
import { goldenNode } from './golden-tables.ts'
import { viewsFromYaml } from './planned-views.ts'

const folder = new URL('../golden/', import.meta.url).pathname

/** Gives each entrance a port, and the same one again. */
export function numberedDoors(address: string, first = 40_000): FindDoor {
  const ports = new Map<string, number>()
  return (view: ServicePortView, { list, seenAs }: Entrance) => {
    const name = `${view.name} ${list} ${seenAs}`
    if (!ports.has(name)) ports.set(name, first + ports.size)
    return { address, port: ports.get(name)! }
  }
}

export function planGoldenUserspace(name: string, family: Family): Table {
  let table: Table | undefined
  const driver = {
    apply(ops: readonly Op[]) {
      table = applyOps(nftFamily(family), USERSPACE_TABLE, table, ops)
      return { bytes: 0 }
    },
    read: () => table,
    readElements: () => [],
    close() {},
  }
  const node = goldenNode(family)
  const views = viewsFromYaml(`${folder}${name}/input.yaml`, node)
  const planner = userspaceMode(numberedDoors(node.nodeIp))
  new NftablesProgrammer({ planner, driver, clock: systemClock }).syncAll(node, views)
  return table!
}
