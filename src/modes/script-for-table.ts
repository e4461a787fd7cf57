// The dry run of a mode's table.

import { systemClock } from '../lib/clock.ts'
import type { ServicePortView } from '../model/types.ts'
import { NftablesDriver } from '../nftables/driver.ts'
import { nftFamily } from '../nftables/language.ts'
import { DryRunTable } from '../nftables/dry-run-table.ts'
import type { Family } from '../lib/ip.ts'
import type { Table } from '../nftables/types.ts'
import type { DryRunScript, DryRunOptions } from './dry-run.ts'
import { scriptOf } from './dry-run.ts'
import type { TablePlanner } from '../table-sync/table-planner.ts'
import { TableProgrammer } from '../table-sync/table-programmer.ts'

export function scriptForTable<P extends ServicePortView>(
  planner: TablePlanner<P>,
  { node, views, kernel }: Pick<DryRunOptions, 'node' | 'kernel'> & { readonly views: Iterable<P> },
): Promise<DryRunScript> {
  return withTable(planner.table, { family: node.family, kernel }, async (table) => {
    await new TableProgrammer({ planner, driver: table, clock: systemClock }).syncAll(node, views)
  })
}

/** Calls back with a table that keeps what is done to it, and answers that. */
export async function withTable(
  name: string,
  { family, kernel }: { readonly family: Family; readonly kernel: DryRunOptions['kernel'] },
  work: (table: DryRunTable) => Promise<void>,
): Promise<DryRunScript> {
  const ofKernel = { family: nftFamily(family), table: name }
  using driver = kernel === 'empty' ? undefined : new NftablesDriver(ofKernel)
  const table = new DryRunTable({ family: nftFamily(family), name, kernel: driver })
  await work(table)
  if (kernel === 'empty') return { program: 'nft', text: table.text() }
  const { needed, leftovers } = table.commands()
  const script = scriptOf('nft', needed)
  return leftovers.length === 0 ? script : { ...script, leftovers: scriptOf('nft', leftovers).text }
}

/** The table of this machine; undefined where it has none, or is not to be looked at. */
export function readTable(name: string, family: Family, kernel: DryRunOptions['kernel']): Table | undefined {
  if (kernel === 'empty') return undefined
  using driver = new NftablesDriver({ family: nftFamily(family), table: name })
  return driver.read()
}
