// What the ipvs mode would program: its table, virtual servers, and the addresses of its link.

import { IpvsDriver } from '../../ipvs/driver.ts'
import { formatOp } from '../../ipvs/format.ts'
import type { IpvsOp, ServerState } from '../../ipvs/types.ts'
import { systemClock } from '../../lib/clock.ts'
import { UnsupportedError } from '../../lib/errors.ts'
import { type Family, ipFamily, parseCidr } from '../../lib/ip.ts'
import { LinkDriver } from '../../links/driver.ts'
import { formatLinkOp, type LinkOp } from '../../links/types.ts'
import { scriptOf, type Rehearsal, type RehearseOptions } from '../rehearsal.ts'
import { withTable } from '../rehearse-table.ts'
import { LINK, TABLE } from './plan/names.ts'
import { DEFAULT_SCHEDULER } from './plan/servers.ts'
import { type AddressDriver, IpvsProgrammer, type ServerDriver } from './programmer.ts'
import { FamilyAudit } from './table-watch.ts'

export function rehearseIpvs(options: RehearseOptions): Rehearsal {
  const { config, node, views, kernel } = options
  const found = kernel === 'empty' ? undefined : readMachine(node.family)
  const ops: IpvsOp[] = []
  const links: string[] = []
  if (found?.hasLink !== true) links.push(`ip link add ${LINK} type dummy`)
  const table = withTable(TABLE, { family: node.family, kernel }, (rules) => {
    const programmer = new IpvsProgrammer({
      family: node.family,
      servers: rehearsedServers(found?.servers ?? [], ops),
      link: rehearsedLink(found?.addresses ?? { own: [], others: ofFamily(options) }, links),
      rules,
      clock: systemClock,
      scheduler: config.ipvs.scheduler || DEFAULT_SCHEDULER,
      excludeCidrs: config.ipvs.excludeCIDRs.flatMap((text) => parseCidr(text) ?? []),
      drainLimitMs: 0,
      audit: new FamilyAudit(),
      onDrained() {},
      onError() {},
    })
    programmer.syncAll(node, views)
    programmer.close()
  })
  const remarks = [
    'The ipvs mode also sets kernel settings: net.ipv4.vs.conntrack, net.ipv4.vs.conn_reuse_mode and others',
  ]
  return {
    scripts: [
      table,
      scriptOf('ipvsadm', ops.map(formatOp)),
      scriptOf('ip', links.map((line) => line.replace(/^ip /, ''))), // prettier-ignore
    ],
    remarks,
  }
}

interface Machine {
  readonly servers: readonly ServerState[]
  readonly hasLink: boolean
  readonly addresses: { readonly own: readonly string[]; readonly others: readonly string[] }
}

function readMachine(family: Family): Machine {
  const link = new LinkDriver(LINK)
  try {
    const hasLink = link.exists()
    if (hasLink) link.ensure()
    return { servers: readServers(family), hasLink, addresses: link.read(family) }
  } finally {
    link.close()
  }
}

/** None where the kernel has no IPVS. */
function readServers(family: Family): readonly ServerState[] {
  let driver: IpvsDriver
  try {
    driver = new IpvsDriver()
  } catch (error) {
    if (error instanceof UnsupportedError) return []
    throw error
  }
  try {
    return driver.read(family)
  } finally {
    driver.close()
  }
}

/** Backends that leave are said to leave; that their connections may end first takes time, and that is for the proxy. */
function rehearsedServers(actual: readonly ServerState[], ops: IpvsOp[]): ServerDriver {
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

function rehearsedLink(addresses: ReturnType<AddressDriver['read']>, commands: string[]): AddressDriver {
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

function ofFamily({ machineAddresses, node }: RehearseOptions): string[] {
  return machineAddresses.filter((address) => ipFamily(address) === node.family)
}
