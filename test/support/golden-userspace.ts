// The golden inputs as planned tables of the userspace mode. Its doors have ports in the order in which they are asked for.

import type { Family } from '../../src/lib/ip.ts'
import type { ServicePortView } from '../../src/model/types.ts'
import type { Entrance } from '../../src/modes/userspace/plan/entrance.ts'
import { userspacePlanner } from '../../src/modes/userspace/plan/planner.ts'
import type { Doors } from '../../src/modes/userspace/plan/service.ts'
import type { Table } from '../../src/nftables/types.ts'
import { goldenNode, planGoldenTable } from './golden-tables.ts'

/** Gives each entrance a port, and the same one again. */
export function numberedDoors(address: string, first = 40_000): Doors {
  const ports = new Map<string, number>()
  return {
    find(view: ServicePortView, { list, seenAs }: Entrance) {
      const name = `${view.name} ${list} ${seenAs}`
      if (!ports.has(name)) ports.set(name, first + ports.size)
      return { address, port: ports.get(name)! }
    },
    leaving: () => [],
  }
}

export function planGoldenUserspace(name: string, family: Family): Table {
  return planGoldenTable(name, family, userspacePlanner(numberedDoors(goldenNode(family).nodeIp)))
}
