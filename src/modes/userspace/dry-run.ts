// What the userspace mode would program: the rules that lead to its listeners.

import type { ServicePortView } from '../../model/types.ts'
import type { DryRun, DryRunOptions } from '../dry-run.ts'
import { readTable, scriptForTable } from '../script-for-table.ts'
import { entranceId, entrancesOf } from './plan/entrance.ts'
import { USERSPACE_TABLE, userspacePlanner } from './plan/planner.ts'
import { knownPorts, type ServedPort } from './plan/service.ts'

/** Where the listeners of a proxy that does not run are said to be. */
const FIRST_PORT = 40_000

export async function dryRunUserspace(options: DryRunOptions): Promise<DryRun> {
  const { node, kernel } = options
  const known = knownPorts(node.family, readTable(USERSPACE_TABLE, node.family, kernel))
  let next = FIRST_PORT
  const served = (view: ServicePortView): ServedPort => {
    // Streams and message boundaries of SCTP would not survive.
    const entrances = view.protocol === 'SCTP' ? [] : entrancesOf(view)
    const listeners = Array.from(entrances, (entrance) => {
      const madeUp = next++
      return [entranceId(entrance), { address: node.nodeIp, port: known(view, entrance) ?? madeUp }] as const
    })
    return { ...view, listeners: new Map(listeners), leaving: [] }
  }
  const script = await scriptForTable(userspacePlanner, { ...options, views: options.views.map(served) })
  const remark =
    'The userspace mode carries connections itself: these rules lead to ports on which the running proxy listens. ' +
    `Those of services that it does not serve yet are made up, from ${FIRST_PORT} on`
  return { scripts: [script], remarks: [remark] }
}
