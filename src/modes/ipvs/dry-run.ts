// What the ipvs mode would program: its table, virtual servers, and the addresses of its link.

import { formatOp } from '../../ipvs/format.ts'
import type { IpvsOp, ServerState } from '../../ipvs/types.ts'
import { systemClock } from '../../lib/clock.ts'
import { ipFamily, parseCidr } from '../../lib/ip.ts'
import { formatLinkOp, type LinkOp } from '../../links/types.ts'
import { scriptOf, type DryRun, type DryRunOptions } from '../dry-run.ts'
import { withTable } from '../script-for-table.ts'
import { LINK, TABLE } from './plan/names.ts'
import { DEFAULT_SCHEDULER } from './plan/servers.ts'
import { type AddressDriver, IpvsProgrammer, type ServerDriver } from './programmer.ts'
import { readIpvsMachine } from './read-machine.ts'
import { FamilyAudit } from './table-watch.ts'

export async function dryRunIpvs(options: DryRunOptions): Promise<DryRun> {
  const { config, node, views, kernel } = options
  const found = kernel === 'empty' ? undefined : readIpvsMachine(node.family)
  const ops: IpvsOp[] = []
  const links: string[] = []
  if (found?.hasLink !== true) links.push(`ip link add ${LINK} type dummy`)
  const table = await withTable(TABLE, { family: node.family, kernel }, async (rules) => {
    const programmer = new IpvsProgrammer({
      family: node.family,
      servers: recordingServers(found?.servers ?? [], ops),
      link: recordingLink(found?.addresses ?? { own: [], others: ofFamily(options) }, links),
      rules,
      clock: systemClock,
      scheduler: config.ipvs.scheduler || DEFAULT_SCHEDULER,
      excludeCidrs: config.ipvs.excludeCIDRs.flatMap((text) => parseCidr(text) ?? []),
      drainLimitMs: 0,
      audit: new FamilyAudit(),
      onDrained() {},
      onError() {},
    })
    await programmer.syncAll(node, views)
    programmer.close()
  })
  const remarks = [
    'The ipvs mode also sets kernel settings: net.ipv4.vs.conntrack, net.ipv4.vs.conn_reuse_mode and others',
  ]
  return {
    scripts: [
      table,
      scriptOf('ipvsadm', ops.map(formatOp)),
      scriptOf(
        'ip',
        links.map((line) => line.replace(/^ip /, '')),
      ),
    ],
    remarks,
  }
}

/** Backends that leave are said to leave; that their connections may end first takes time, and that is for the proxy. */
function recordingServers(actual: readonly ServerState[], ops: IpvsOp[]): ServerDriver {
  return {
    read: () => actual,
    apply(some) {
      for (const op of some) ops.push(op)
      return { bytes: 0 }
    },
    readDestinations: () => [],
    readConnections: () => Promise.resolve(false),
    close() {},
  }
}

function recordingLink(addresses: ReturnType<AddressDriver['read']>, commands: string[]): AddressDriver {
  return {
    ensure() {},
    read: () => addresses,
    apply(ops: readonly LinkOp[]) {
      for (const op of ops) commands.push(formatLinkOp(op, LINK))
      return { bytes: 0 }
    },
    close() {},
  }
}

function ofFamily({ machineAddresses, node }: DryRunOptions): string[] {
  return machineAddresses.filter((address) => ipFamily(address) === node.family)
}
