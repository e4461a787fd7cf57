// The golden inputs as planned tables of the iptables mode, with its default settings.

import type { Family } from '../../src/lib/ip.ts'
import { silentLogger } from '../../src/lib/log.ts'
import type { ServicePortView } from '../../src/model/types.ts'
import { iptablesPlanner } from '../../src/modes/iptables/plan/planner.ts'
import { IptablesProgrammer } from '../../src/modes/iptables/programmer.ts'
import type { Tables } from '../../src/iptables/types.ts'
import { goldenNode } from './golden-tables.ts'
import { MemoryIptables } from './memory-iptables.ts'
import { viewsFromYaml } from './planned-views.ts'

export async function planGoldenIptables(name: string, family: Family): Promise<Tables> {
  const path = new URL(`../golden/${name}/input.yaml`, import.meta.url).pathname
  const node = { ...goldenNode(family), nodePortAddresses: { kind: 'all' } as const }
  return planIptables(family, viewsFromYaml(path, node))
}

/** The tables of a node that has these services and nothing else. */
export async function planIptables(family: Family, views: readonly ServicePortView[]): Promise<Tables> {
  const driver = new MemoryIptables()
  const programmer = new IptablesProgrammer({
    planner: iptablesPlanner({
      localhostNodePorts: 'allowed',
      invalidPackets: 'drop',
      masqueradePorts: 'fully',
      counters: new Set(['ct_state_invalid_dropped_pkts', 'localhost_nps_accepted_pkts']),
    }),
    driver,
    log: silentLogger,
    counts: { rules: () => {}, restoreFailed: () => {} },
    onRefused: (service, reason) => {
      throw new Error(`Cannot program ${service}: ${reason}`)
    },
  })
  await programmer.syncAll({ ...goldenNode(family), nodePortAddresses: { kind: 'all' } }, views)
  return driver.tables
}
