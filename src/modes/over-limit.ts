// What was over the limits of services, for modes whose nftables table has the limits: its rules count.

import type { Family } from '../lib/ip.ts'
import { lookedUp, type Printable } from '../metrics/registry.ts'
import type { ServicePortView } from '../model/types.ts'
import { NftablesDriver } from '../nftables/driver.ts'
import { nftFamily } from '../nftables/language.ts'
import { countOverLimit, overChain, servicePortOf } from '../table-sync/plan/limits.ts'
import type { CountedRefusal } from '../traffic/read-counters.ts'

export function overLimitMetric(table: string, families: readonly Family[]): Printable {
  return lookedUp(
    'counter',
    {
      name: 'kubeproxyts_over_limit_packets_total',
      help: 'Packets refused or dropped because a limit of the annotation connection-limits was reached',
      labels: ['ip_family', 'service_port'],
    },
    () =>
      families.flatMap((family) =>
        Array.from(
          readOverLimit(table, family),
          ([chain, packets]) => [[`IPv${family}`, servicePortOf(chain)] as const, packets] as const,
        ),
      ),
  )
}

/** The same as what was refused at the first frontend of each service port. */
export function addOverLimit(
  refusals: readonly CountedRefusal[],
  { table, family, views }: { table: string; family: Family; views: readonly ServicePortView[] },
): readonly CountedRefusal[] {
  const limited = views.filter(({ frontends }) => frontends[0]?.limits !== undefined)
  if (limited.length === 0) return refusals
  const counts = readOverLimit(table, family)
  const added = limited.flatMap((view) => {
    const packets = counts.get(overChain(view)) ?? 0
    const { protocol, address, port } = view.frontends[0]!
    return packets === 0 ? [] : { protocol, address, port, packets }
  })
  const isSame = (a: CountedRefusal, b: CountedRefusal) =>
    a.protocol === b.protocol && a.address === b.address && a.port === b.port
  const others = refusals.filter((each) => !added.some((refusal) => isSame(each, refusal)))
  const sums = added.map((refusal) => {
    const before = refusals.find((each) => isSame(each, refusal))
    return { ...refusal, packets: refusal.packets + (before?.packets ?? 0) }
  })
  return [...others, ...sums]
}

/** By chain. */
function readOverLimit(table: string, family: Family): ReadonlyMap<string, number> {
  const driver = new NftablesDriver({ family: nftFamily(family), table })
  try {
    return countOverLimit(driver.readOutline()?.chains.values() ?? [])
  } finally {
    driver.close()
  }
}
