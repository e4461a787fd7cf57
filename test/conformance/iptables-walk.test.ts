// The packet-flow table against the plan of the iptables mode.

import { describe } from 'vitest'
import { ManualClock } from '../support/manual-clock.ts'
import { formatIp, isLoopback, ipBytes, type Bytes } from '../../src/lib/ip.ts'
import { silentLogger } from '../../src/lib/log.ts'
import type { NodeView, ServicePortChange } from '../../src/model/types.ts'
import { iptablesPlanner } from '../../src/modes/iptables/plan/planner.ts'
import { IptablesProgrammer } from '../../src/modes/iptables/programmer.ts'
import type { Backend } from '../../src/iptables/script.ts'
import { walkTables } from '../../src/iptables/walk.ts'
import { nodeAddresses } from '../support/addresses.ts'
import { MemoryIptables } from '../support/memory-iptables.ts'
import { CLIENT_PORT } from '../support/walk-flow.ts'
import { type PlannedNode, type PlannedWay, testPlannedFlows } from '../support/planned-node.ts'
import { quarter } from '../support/runs.ts'
import { packetFlowCases } from './packet-flow.cases.ts'
import { type Flow, sources } from './packet-flow.ts'

class IptablesNode implements PlannedNode {
  readonly clock = new ManualClock()
  readonly #recent = new Map<string, Map<Bytes, number>>()
  readonly #driver: MemoryIptables
  readonly #node: NodeView
  readonly #programmer: IptablesProgrammer

  private constructor(node: NodeView, backend: Backend) {
    this.#node = node
    this.#driver = new MemoryIptables(backend)
    this.#programmer = new IptablesProgrammer({
      planner: iptablesPlanner({
        localhostNodePorts: 'allowed',
        invalidPackets: 'drop',
        masqueradePorts: 'fully',
        counters: new Set(),
      }),
      driver: this.#driver,
      log: silentLogger,
      counts: { rules: () => {}, restoreFailed: () => {} },
      onRefused: (service, reason) => {
        throw new Error(`Cannot program ${service}: ${reason}`)
      },
    })
  }

  static async open(node: NodeView, backend: Backend): Promise<IptablesNode> {
    const opened = new IptablesNode(node, backend)
    await opened.#programmer.syncAll(node, [])
    return opened
  }

  async sync(changes: readonly ServicePortChange[]): Promise<void> {
    await this.#programmer.sync(this.#node, changes)
    // The kernel forgets a list with the last rule that names it.
    const text = [...this.#driver.tables.get('nat')!.values()].flat().join('\n')
    for (const list of this.#recent.keys()) if (!text.includes(`--name ${list} `)) this.#recent.delete(list)
  }

  walk(flow: Flow, client: string, choice: number): PlannedWay {
    const walk = walkTables(
      this.#driver.tables,
      {
        inputInterface: sources[flow.from].iif,
        source: ipBytes(client),
        destination: ipBytes(flow.to.address),
        protocol: flow.to.protocol,
        sourcePort: CLIENT_PORT,
        destinationPort: flow.to.port,
      },
      {
        isLocalAddress: (address) => isLoopback(address) || nodeAddresses.includes(formatIp(address)),
        random: (outOf) => choice % Math.ceil(outOf),
        now: () => this.clock.monotonicNow(),
        recent: this.#recent,
      },
    )
    return { ...walk, met: walk.steps.map(({ table, chain, rule }) => `${table} ${chain}: ${rule}`) }
  }
}

describe.each(['nft', 'legacy'] as const)('the plan of the iptables mode for iptables-%s', (backend) => {
  const mode = {
    name: 'iptables',
    defaultNodePortAddresses: [],
    open: (node: NodeView) => IptablesNode.open(node, backend),
  } as const
  // The two programs take the same rules, in another order of commands.
  testPlannedFlows(mode, backend === 'nft' ? packetFlowCases : quarter(packetFlowCases, 0))
})
