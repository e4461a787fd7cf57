// The packet-flow table against the plan of the nftables mode.

import { describe } from 'vitest'
import { ManualClock } from '../../src/lib/clock.ts'
import type { NodeView, ServicePortChange } from '../../src/model/types.ts'
import { nftablesPlanner } from '../../src/modes/nftables/plan/planner.ts'
import type { TableDriver } from '../../src/nftables/table-driver.ts'
import { TableProgrammer } from '../../src/modes/shared/table-programmer.ts'
import { applyOps } from '../../src/nftables/apply-ops.ts'
import { nftFamily } from '../../src/nftables/language.ts'
import type { LearnedElement } from '../../src/nftables/walk.ts'
import type { NftSet, Op, Table } from '../../src/nftables/types.ts'
import { type PlannedNode, type PlannedWay, testPlannedFlows } from '../support/planned-node.ts'
import { walkFlow } from '../support/walk-flow.ts'
import type { Flow } from './packet-flow.ts'

class NftablesNode implements PlannedNode, TableDriver {
  readonly learned = new Map<string, Map<string, LearnedElement>>()
  readonly clock = new ManualClock()
  readonly #node: NodeView
  readonly #programmer: TableProgrammer
  #table: Table | undefined

  constructor(node: NodeView) {
    this.#node = node
    this.#programmer = new TableProgrammer({ planner: nftablesPlanner, driver: this, clock: this.clock })
    this.#programmer.syncAll(this.#node, [])
  }

  sync(changes: readonly ServicePortChange[]): void {
    this.#programmer.sync(this.#node, changes)
    void this.#programmer.finish()
  }

  walk(flow: Flow, client: string, choice: number): PlannedWay {
    return walkFlow(this.#table!, flow, client, {
      random: (modulus) => choice % modulus,
      now: () => this.clock.monotonicNow(),
      learned: this.learned,
    })
  }

  apply(ops: readonly Op[]): { bytes: number } {
    for (const op of ops) {
      if (op.op === 'deleteSet') this.learned.delete(op.name)
      if (op.op !== 'deleteElements' || !op.set.dynamic) continue
      for (const { key } of op.elements) this.learned.get(op.set.name)?.delete(key)
    }
    const planned = ops.filter((op) => op.op !== 'deleteElements' || !op.set.dynamic)
    this.#table = applyOps(nftFamily(this.#node.family), nftablesPlanner.table, this.#table, planned)
    return { bytes: 0 }
  }

  read(): Table | undefined {
    return this.#table
  }

  readElements(set: NftSet): { key: string; data: string }[] {
    return Array.from(this.learned.get(set.name) ?? [], ([key, { data }]) => ({ key, data }))
  }

  close(): void {}
}

describe('the plan of the nftables mode', () => {
  testPlannedFlows({
    name: 'nftables',
    defaultNodePortAddresses: ['primary'],
    open: (node) => new NftablesNode(node),
  })
})
