// The golden inputs as planned tables of the userspace mode. Its listeners have ports in the order of service ports.

import type { Family } from '../../src/lib/ip.ts'
import type { ServicePortView } from '../../src/model/types.ts'
import { type Entrance, entranceId, entrancesOf } from '../../src/modes/userspace/plan/entrance.ts'
import { userspacePlanner } from '../../src/modes/userspace/plan/planner.ts'
import type { ListenAddress } from '../../src/modes/userspace/plan/service.ts'
import type { Table } from '../../src/nftables/types.ts'
import type { TablePlanner } from '../../src/table-sync/table-planner.ts'
import { goldenNode, planGoldenTable } from './golden-tables.ts'

/** A planner for service ports that all have listeners. */
export function userspacePlannerWith(
  listenerOf: (view: ServicePortView, entrance: Entrance) => ListenAddress | undefined,
): TablePlanner {
  return {
    table: userspacePlanner.table,
    base: (node) => userspacePlanner.base(node),
    service(node, view) {
      const listeners = Array.from(entrancesOf(view), (entrance) => {
        const listener = listenerOf(view, entrance)
        return listener === undefined ? [] : [[entranceId(entrance), listener] as const]
      })
      return userspacePlanner.service(node, { ...view, listeners: new Map(listeners.flat()), leaving: [] })
    },
  }
}

/** Gives each entrance a port, and the same one again. */
export function numberedListeners(address: string, first = 40_000): TablePlanner {
  const ports = new Map<string, number>()
  return userspacePlannerWith((view, entrance) => {
    const name = `${view.name} ${entranceId(entrance)}`
    if (!ports.has(name)) ports.set(name, first + ports.size)
    return { address, port: ports.get(name)! }
  })
}

export function planGoldenUserspace(name: string, family: Family): Table {
  return planGoldenTable(name, family, numberedListeners(goldenNode(family).nodeIp))
}
