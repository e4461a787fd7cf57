// The packet-flow table against the plan of the userspace mode: the rules lead to a listener, and behind it the balancer
// chooses. Only sockets are left out.

import { describe } from 'vitest'
import { ManualClock } from '../support/manual-clock.ts'
import { ipBytes } from '../../src/lib/ip.ts'
import type { NodeView, ServicePortChange, ServicePortView } from '../../src/model/types.ts'
import { type Entrance, listsOf } from '../../src/modes/userspace/plan/entrance.ts'
import { USERSPACE_TABLE } from '../../src/modes/userspace/plan/planner.ts'
import type { TableDriver } from '../../src/nftables/table-driver.ts'
import { TableProgrammer } from '../../src/table-sync/table-programmer.ts'
import { applyOps } from '../../src/nftables/apply-ops.ts'
import { nftFamily } from '../../src/nftables/language.ts'
import type { Op, Table } from '../../src/nftables/types.ts'
import type { Walk } from '../../src/nftables/walk.ts'
import { Balancer } from '../../src/data-path/balancer.ts'
import { isDisguised } from '../../src/data-path/client-sources.ts'
import { contentOf } from '../../src/data-path/pool-content.ts'
import { hashBy } from '../../src/model/balance.ts'
import { HealthBoard } from '../../src/data-path/pool-board.ts'
import { decodeAddress, encodeAddress, hostKey } from '../../src/system/socket-address.ts'
import { type PlannedNode, type PlannedWay, testPlannedFlows } from '../support/planned-node.ts'
import { userspacePlannerWith } from '../support/golden-userspace.ts'
import { CLIENT_PORT, walkFlow } from '../support/walk-flow.ts'
import type { Flow } from './packet-flow.ts'

const SLOTS = 300

/** What is behind a port of the proxy. */
interface Behind {
  readonly list: string
  readonly entrance: Entrance
}

class UserspaceNode implements PlannedNode, TableDriver {
  readonly clock = new ManualClock()
  readonly #node: NodeView
  readonly #programmer: TableProgrammer
  readonly #ports = new Map<string, number>()
  readonly #behind = new Map<number, Behind>()
  readonly #balancers = new Map<string, Balancer>()
  #table: Table | undefined

  constructor(node: NodeView) {
    this.#node = node
    const planner = userspacePlannerWith((view, entrance) => ({
      address: node.nodeIp,
      port: this.#portFor(view, entrance),
    }))
    this.#programmer = new TableProgrammer({ planner, driver: this, clock: this.clock })
    // A new table is made in one turn.
    void this.#programmer.syncAll(node, [])
  }

  async sync(changes: readonly ServicePortChange[]): Promise<void> {
    for (const { after } of changes) {
      for (const [list, { backends }] of after === undefined ? [] : listsOf(after)) {
        const content = contentOf({
          backends: backends.map(({ ip, port, weight }, slot) => ({ ip, port, weight, slot, serial: slot })),
          health: HealthBoard.create(SLOTS).memory,
          affinitySeconds: after!.frontends[0]?.affinitySeconds,
          hashBy: hashBy(backends.balance),
        })
        const name = `${after!.name} ${list}`
        const balancer = this.#balancers.get(name)
        if (balancer === undefined) this.#balancers.set(name, new Balancer(content))
        else balancer.update(content)
      }
    }
    await this.#programmer.sync(this.#node, changes)
    await this.#programmer.finish()
  }

  walk(flow: Flow, client: string, choice: number): PlannedWay {
    const walk = walkFlow(this.#table!, flow, client, {
      random: () => 0,
      now: () => this.clock.monotonicNow(),
      dynamicElements: new Map(),
    })
    const isCarried = walk.verdict === 'accept' && walk.translated && flow.to.protocol !== 'ICMP'
    return isCarried ? this.#carry(walk, encodeAddress(client, CLIENT_PORT + choice), walk.met) : walk
  }

  /** What the data path does with who comes in by a listener. */
  #carry(walk: Walk, from: Uint8Array, met: readonly string[]): PlannedWay {
    const { list, entrance } = this.#behind.get(walk.destinationPort)!
    const balancer = this.#balancers.get(list)!
    const nowMs = this.clock.monotonicNow()
    const backend = balancer.pick(hostKey(from), nowMs, from)!
    balancer.remember(backend, hostKey(from), nowMs)
    const disguise = {
      family: this.#node.family,
      protocol: 'TCP',
      node: encodeAddress(this.#node.nodeIp, 0),
      backend: backend.address,
      client: from,
    } as const
    const { ip, port } = decodeAddress(backend.address)
    return {
      verdict: 'accept',
      destination: ipBytes(ip),
      destinationPort: port,
      translated: true,
      masqueraded: !isDisguised(entrance.seenAs, disguise),
      met: [...met, `listener ${list}, seen as the ${entrance.seenAs}`],
    }
  }

  #portFor(view: ServicePortView, entrance: Entrance): number {
    const list = `${view.name} ${entrance.list}`
    const name = `${list} ${entrance.seenAs}`
    let port = this.#ports.get(name)
    if (port === undefined) {
      port = 50_000 + this.#ports.size
      this.#ports.set(name, port)
      this.#behind.set(port, { list, entrance })
    }
    return port
  }

  apply(ops: readonly Op[]): { bytes: number } {
    this.#table = applyOps(nftFamily(this.#node.family), USERSPACE_TABLE, this.#table, ops)
    return { bytes: 0 }
  }

  read(): Table | undefined {
    return this.#table
  }

  readElements(): [] {
    return []
  }

  close(): void {}
}

describe('the plan of the userspace mode', () => {
  testPlannedFlows({
    name: 'userspace',
    defaultNodePortAddresses: [],
    open: (node) => new UserspaceNode(node),
  })
})
