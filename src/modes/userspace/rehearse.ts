// What the userspace mode would program: the rules that lead to its doors.

import type { ServicePortView } from '../../model/types.ts'
import type { Rehearsal, RehearseOptions } from '../rehearsal.ts'
import { readTable, rehearseTable } from '../rehearse-table.ts'
import type { Entrance } from './plan/entrance.ts'
import { USERSPACE_TABLE, userspacePlanner } from './plan/planner.ts'
import { type DoorAddress, type Doors, knownPorts } from './plan/service.ts'

/** Where the doors of a proxy that does not run are said to be. */
const FIRST_PORT = 40_000

export function rehearseUserspace(options: RehearseOptions): Rehearsal {
  const { node, kernel } = options
  const known = knownPorts(node.family, readTable(USERSPACE_TABLE, node.family, kernel))
  const doors = new NumberedDoors(node.nodeIp, known)
  const script = rehearseTable(userspacePlanner(doors), options)
  const remark =
    'The userspace mode carries connections itself: these rules lead to ports on which the running proxy listens. ' +
    `Those of services that it does not serve yet are made up, from ${FIRST_PORT} on`
  return { scripts: [script], remarks: [remark] }
}

class NumberedDoors implements Doors {
  readonly #address: string
  readonly #known: ReturnType<typeof knownPorts>
  readonly #ports = new Map<string, number>()

  constructor(address: string, known: ReturnType<typeof knownPorts>) {
    this.#address = address
    this.#known = known
  }

  readonly find = (view: ServicePortView, entrance: Entrance): DoorAddress | undefined => {
    // Its streams and message boundaries would not survive.
    if (view.protocol === 'SCTP') return undefined
    const name = `${view.name} ${entrance.list} ${entrance.seenAs}`
    let port = this.#ports.get(name)
    if (port === undefined) {
      port = this.#known(view, entrance) ?? FIRST_PORT + this.#ports.size
      this.#ports.set(name, port)
    }
    return { address: this.#address, port }
  }

  readonly leaving = (): readonly DoorAddress[] => []
}
