// What each mode would put into the kernel, in memory, for packets to walk through.

import { ManualClock } from './manual-clock.ts'
import { formatIp, joinHostPort, ipBytes } from '../../src/lib/ip.ts'
import { silentLogger } from '../../src/lib/log.ts'
import type { KernelWay, Walkable } from '../../src/packet-walk/types.ts'
import { walkableTables } from '../../src/iptables/walkable.ts'
import { walkableIpvs } from '../../src/modes/ipvs/walkable.ts'
import type { NodeView, ServicePortView } from '../../src/model/types.ts'
import { iptablesPlanner } from '../../src/modes/iptables/plan/planner.ts'
import { IptablesProgrammer } from '../../src/modes/iptables/programmer.ts'
import { ipvsPlanner } from '../../src/modes/ipvs/plan/planner.ts'
import { IpvsProgrammer } from '../../src/modes/ipvs/programmer.ts'
import { FamilyAudit } from '../../src/modes/ipvs/table-watch.ts'
import { nftablesPlanner } from '../../src/modes/nftables/plan/planner.ts'
import { TableProgrammer } from '../../src/table-sync/table-programmer.ts'
import { type Entrance, listsOf } from '../../src/modes/userspace/plan/entrance.ts'
import { USERSPACE_TABLE } from '../../src/modes/userspace/plan/planner.ts'
import { isDisguised } from '../../src/data-path/client-sources.ts'
import { encodeAddress } from '../../src/system/socket-address.ts'
import { walkableTable } from '../../src/nftables/walkable.ts'
import type { ModeName } from '../conformance/modes.ts'
import { nodeAddresses } from './addresses.ts'
import { userspacePlannerWith } from './golden-userspace.ts'
import { MemoryIptables } from './memory-iptables.ts'
import { MemoryIpvs, MemoryLink } from './memory-ipvs.ts'
import { MemoryTable } from './memory-table.ts'
import { CLIENT_PORT } from './walk-flow.ts'

type Plan = (node: NodeView, views: readonly ServicePortView[]) => Walkable | Promise<Walkable>

export const plannedWalkables: Readonly<Record<ModeName, Plan>> = { nftables, iptables, ipvs, userspace }

function nftables(node: NodeView, views: readonly ServicePortView[]): Walkable {
  const driver = new MemoryTable(node.family, nftablesPlanner.table)
  // A new table is made in one turn.
  void new TableProgrammer({ planner: nftablesPlanner, driver, clock: new ManualClock() }).syncAll(node, views)
  return walkableTable(driver.table!, new Map())
}

async function iptables(node: NodeView, views: readonly ServicePortView[]): Promise<Walkable> {
  const driver = new MemoryIptables()
  const programmer = new IptablesProgrammer({
    planner: iptablesPlanner({
      localhostNodePorts: 'allowed',
      invalidPackets: 'drop',
      masqueradePorts: 'fully',
      counters: new Set(),
    }),
    driver,
    log: silentLogger,
    counts: { rules: () => {}, restoreFailed: () => {} },
    onRefused: (service, reason) => {
      throw new Error(`Cannot program ${service}: ${reason}`)
    },
  })
  await programmer.syncAll(node, views)
  return walkableTables({ tables: driver.tables, counts: new Map() }, new Map(), 'planned tables of iptables')
}

async function ipvs(node: NodeView, views: readonly ServicePortView[]): Promise<Walkable> {
  const rules = new MemoryTable(node.family, ipvsPlanner.table)
  const servers = new MemoryIpvs()
  const link = new MemoryLink([...nodeAddresses, '127.0.0.1', '::1'])
  const programmer = new IpvsProgrammer({
    family: node.family,
    servers,
    link,
    rules,
    clock: new ManualClock(),
    scheduler: 'rr',
    excludeCidrs: [],
    drainLimitMs: 3_600_000,
    audit: new FamilyAudit(),
    onDrained: () => {},
    onError: (error) => {
      throw error
    },
  })
  await programmer.syncAll(node, views)
  const state = {
    table: rules.table!,
    servers: servers.read(node.family),
    addresses: link.own,
    templates: new Map(),
  }
  return walkableIpvs(state, new Map())
}

/** Behind a listener, any backend of its list may be next. */
function userspace(node: NodeView, views: readonly ServicePortView[]): Walkable {
  const driver = new MemoryTable(node.family, USERSPACE_TABLE)
  const behind = new Map<number, { readonly view: ServicePortView; readonly entrance: Entrance }>()
  const ports = new Map<string, number>()
  const planner = userspacePlannerWith((view, entrance) => {
    if (view.protocol === 'SCTP') return undefined
    const name = `${view.name} ${entrance.list} ${entrance.seenAs}`
    const port = ports.get(name) ?? 50_000 + ports.size
    ports.set(name, port)
    behind.set(port, { view, entrance })
    return { address: node.nodeIp, port }
  })
  // A new table is made in one turn.
  void new TableProgrammer({ planner, driver, clock: new ManualClock() }).syncAll(node, views)
  const rules = walkableTable(driver.table!, new Map())
  return {
    what: rules.what,
    walk(packet, around): KernelWay {
      const way = rules.walk(packet, around)
      const listener = way.verdict === 'accept' && way.translated ? behind.get(way.destinationPort) : undefined
      if (listener === undefined) return way
      const { backends } = listsOf(listener.view).get(listener.entrance.list)!
      const { ip, port } = [...backends][around.random(backends.length)]!
      const disguise = {
        family: node.family,
        protocol: 'TCP',
        node: encodeAddress(node.nodeIp, 0),
        backend: encodeAddress(ip, port),
        client: encodeAddress(formatIp(packet.source), CLIENT_PORT),
      } as const
      const masqueraded = !isDisguised(listener.entrance.seenAs, disguise)
      const end = {
        verdict: way.verdict,
        translated: true,
        destination: ipBytes(ip),
        destinationPort: port,
        masqueraded,
      }
      return {
        ...end,
        get steps() {
          return way.steps
        },
      }
    },
  }
}

/** For messages: the way with all that it met. */
export function describeWay({ verdict, destination, destinationPort, masqueraded, steps }: KernelWay): string {
  const end = `${verdict} ${joinHostPort(formatIp(destination), destinationPort)}${masqueraded ? ', masqueraded' : ''}`
  return [end, ...steps.map(({ hook, place, rule }) => `  ${hook} ${place}: ${rule}`)].join('\n')
}
