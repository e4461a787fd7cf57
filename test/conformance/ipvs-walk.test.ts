// The packet-flow table against the plan of the ipvs mode: virtual servers, the addresses of kube-ipvs0 and the rules.

import { describe } from 'vitest'
import { ManualClock } from '../support/manual-clock.ts'
import { formatIp, isLoopback, ipBytes } from '../../src/lib/ip.ts'
import type { NodeView, ServicePortChange } from '../../src/model/types.ts'
import { ipvsPlanner } from '../../src/modes/ipvs/plan/planner.ts'
import { IpvsProgrammer } from '../../src/modes/ipvs/programmer.ts'
import { FamilyAudit } from '../../src/modes/ipvs/table-watch.ts'
import type { Template } from '../../src/ipvs/walk.ts'
import { walkIpvs } from '../../src/modes/ipvs/walkable.ts'
import { applyOps } from '../../src/nftables/apply-ops.ts'

import { nftFamily } from '../../src/nftables/language.ts'
import type { Op, Table } from '../../src/nftables/types.ts'
import { nodeAddresses } from '../support/addresses.ts'
import { MemoryIpvs, MemoryLink } from '../support/memory-ipvs.ts'
import { type PlannedNode, type PlannedWay, testPlannedFlows } from '../support/planned-node.ts'
import { CLIENT_PORT } from '../support/walk-flow.ts'
import { type Flow, sources } from './packet-flow.ts'

class IpvsNode implements PlannedNode {
  readonly clock = new ManualClock()
  readonly #node: NodeView
  readonly #servers = new MemoryIpvs()
  readonly #link = new MemoryLink([...nodeAddresses, '127.0.0.1', '::1'])
  readonly #templates = new Map<string, Template>()
  readonly #programmer: IpvsProgrammer
  #table: Table | undefined

  private constructor(node: NodeView) {
    this.#node = node
    const fail = (error: unknown) => {
      throw error
    }
    this.#programmer = new IpvsProgrammer({
      family: node.family,
      servers: this.#servers,
      link: this.#link,
      rules: {
        apply: (ops: readonly Op[]) => {
          this.#table = applyOps(nftFamily(node.family), ipvsPlanner.table, this.#table, ops)
          return { bytes: 0 }
        },
        read: () => this.#table,
        readElements: () => [],
        close: () => {},
      },
      clock: this.clock,
      scheduler: 'rr',
      excludeCidrs: [],
      drainLimitMs: 3_600_000,
      audit: new FamilyAudit(),
      onDrained: () => {},
      onError: fail,
    })
  }

  static async open(node: NodeView): Promise<IpvsNode> {
    const opened = new IpvsNode(node)
    await opened.#programmer.syncAll(node, [])
    return opened
  }

  async sync(changes: readonly ServicePortChange[]): Promise<void> {
    await this.#programmer.sync(this.#node, changes)
    await this.#programmer.finish()
  }

  walk({ from, to }: Flow, client: string, choice: number): PlannedWay {
    const isOwn = (address: string) => this.#link.own.has(address) || nodeAddresses.includes(address)
    // To an address of its own, the node sends from that address.
    const source = from === 'node' && isOwn(to.address) ? to.address : client
    const walk = walkIpvs(
      {
        table: this.#table!,
        servers: this.#servers.read(this.#node.family),
        addresses: this.#link.own,
        templates: this.#templates,
      },
      {
        inputInterface: sources[from].iif,
        source: ipBytes(source),
        destination: ipBytes(to.address),
        protocol: to.protocol,
        sourcePort: CLIENT_PORT,
        destinationPort: to.port,
      },
      {
        isLocalAddress: (address) => isLoopback(address) || nodeAddresses.includes(formatIp(address)),
        random: (modulus) => choice % modulus,
        now: () => this.clock.monotonicNow(),
        dynamicElements: new Map(),
      },
    )
    return { ...walk, met: walk.steps.map(({ chain, rule }) => `${chain}: ${rule.text}`) }
  }
}

describe('the plan of the ipvs mode', () => {
  testPlannedFlows({
    name: 'ipvs',
    defaultNodePortAddresses: [],
    open: (node) => IpvsNode.open(node),
  })
})
