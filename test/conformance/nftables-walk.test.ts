// The packet-flow table against the plan of the nftables mode.

import { describe } from 'vitest'
import { ManualClock } from '../support/manual-clock.ts'
import { joinHostPort, ipBytes, type Bytes } from '../../src/lib/ip.ts'
import { type LocalhostListener, planLocalhostListener } from '../../src/model/localhost.ts'
import { LOCALHOST } from '../../src/model/node-port-addresses.ts'
import type { NodeView, ServicePortChange } from '../../src/model/types.ts'
import { nftablesPlanner } from '../../src/modes/nftables/plan/planner.ts'
import type { TableDriver } from '../../src/nftables/table-driver.ts'
import { TableProgrammer } from '../../src/table-sync/table-programmer.ts'
import { applyOps } from '../../src/nftables/apply-ops.ts'
import { nftFamily } from '../../src/nftables/language.ts'
import type { DynamicElement } from '../../src/nftables/walk.ts'
import type { NftSet, Op, Table } from '../../src/nftables/types.ts'
import { Balancer } from '../../src/data-path/balancer.ts'
import { HealthBoard } from '../../src/data-path/pool-board.ts'
import { decodeAddress, encodeAddress, hostKey } from '../../src/system/socket-address.ts'
import { type PlannedNode, type PlannedWay, testPlannedFlows } from '../support/planned-node.ts'
import { CLIENT_PORT, walkFlow } from '../support/walk-flow.ts'
import type { Flow } from './packet-flow.ts'

/** What a listener of the proxy has behind it. */
type Relay = LocalhostListener & { readonly balancer: Balancer }

class NftablesNode implements PlannedNode, TableDriver {
  readonly #relays = new Map<string, Relay>()
  readonly dynamicElements = new Map<string, Map<Bytes, DynamicElement>>()
  readonly clock = new ManualClock()
  readonly #node: NodeView
  readonly #programmer: TableProgrammer
  #table: Table | undefined

  constructor(node: NodeView) {
    this.#node = node
    this.#programmer = new TableProgrammer({ planner: nftablesPlanner, driver: this, clock: this.clock })
    // A new table is made in one turn.
    void this.#programmer.syncAll(this.#node, [])
  }

  async sync(changes: readonly ServicePortChange[]): Promise<void> {
    await this.#programmer.sync(this.#node, changes)
    await this.#programmer.finish()
    for (const { name, after } of changes) {
      const listener = after && planLocalhostListener(this.#node, after)
      if (listener === undefined) this.#relays.delete(name)
      else this.#relays.set(name, { ...listener, balancer: newBalancer(listener) })
    }
  }

  /** What the rules leave alone may be for a listener. */
  walk(flow: Flow, client: string, choice: number): PlannedWay {
    const way = this.#walkRules(flow, client, choice)
    const { address, port, protocol } = flow.to
    const relay = [...this.#relays.values()].find((each) => each.port === port && each.protocol === protocol)
    if (relay === undefined || address !== LOCALHOST[this.#node.family]) return way
    if (way.verdict !== 'accept' || way.translated) return way
    const host = hostKey(encodeAddress(address, 0))
    const backend = relay.balancer.pick(host, this.clock.monotonicNow(), encodeAddress(address, 0))!
    relay.balancer.remember(backend, host, this.clock.monotonicNow())
    const to = decodeAddress(backend.address)
    const end = { destination: ipBytes(to.ip), destinationPort: to.port, translated: true, masqueraded: true }
    return { ...way, ...end, met: [...way.met, `listener ${address} ${port}/${protocol}`] }
  }

  #walkRules(flow: Flow, client: string, choice: number): PlannedWay {
    return walkFlow(this.#table!, flow, client, {
      random: (modulus) => choice % modulus,
      sourcePort: CLIENT_PORT + choice,
      now: () => this.clock.monotonicNow(),
      dynamicElements: this.dynamicElements,
    })
  }

  apply(ops: readonly Op[]): { bytes: number } {
    for (const op of ops) {
      if (op.op === 'deleteSet') this.dynamicElements.delete(op.name)
      if (op.op !== 'deleteElements' || !op.set.dynamic) continue
      for (const { key } of op.elements) this.dynamicElements.get(op.set.name)?.delete(key)
    }
    const planned = ops.filter((op) => op.op !== 'deleteElements' || !op.set.dynamic)
    this.#table = applyOps(nftFamily(this.#node.family), nftablesPlanner.table, this.#table, planned)
    return { bytes: 0 }
  }

  read(): Table | undefined {
    return this.#table
  }

  readElements(set: NftSet): { key: Bytes; data: Bytes }[] {
    return Array.from(this.dynamicElements.get(set.name) ?? [], ([key, { data }]) => ({ key, data }))
  }

  close(): void {}
}

function newBalancer({ backends, affinitySeconds }: LocalhostListener): Balancer {
  return new Balancer({
    backends: backends.map(({ ip, port }, slot) => ({
      id: joinHostPort(ip, port),
      address: encodeAddress(ip, port),
      slot,
      serial: slot,
    })),
    health: HealthBoard.create(backends.length),
    affinityMs: affinitySeconds === undefined ? undefined : affinitySeconds * 1000,
  })
}

describe('the plan of the nftables mode', () => {
  testPlannedFlows({
    name: 'nftables',
    defaultNodePortAddresses: ['primary'],
    open: (node) => new NftablesNode(node),
  })
})
