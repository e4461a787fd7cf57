import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { aNodeView, arbitraryView } from '../../../../test/support/arbitrary-views.ts'
import { runs } from '../../../../test/support/runs.ts'
import { atOnce } from '../../../lib/steps.ts'
import { parseIp, ipBytes } from '../../../lib/ip.ts'
import { applyOps } from '../../../nftables/apply-ops.ts'
import { buildTable } from '../../../nftables/build-table.ts'
import { diffingFragments } from '../../../nftables/diff-fragments.ts'

import { TableState } from '../../../nftables/table-state.ts'
import type { PartSizes } from '../../../nftables/parts.ts'
import type { Op, Table } from '../../../nftables/types.ts'
import { walkTable } from '../../../nftables/walk.ts'
import type { Frontend, ServicePortView } from '../../../model/types.ts'
import { nftablesPlanner } from './planner.ts'

const node = aNodeView()
const SOURCES = ['10.1.2.3', '10.64.0.9', '192.168.0.7', '203.0.113.99']
type Views = readonly (ServicePortView | undefined)[]

const apply = (table: Table | undefined, ops: readonly Op[]) => applyOps('ip', nftablesPlanner.table, table, ops)

function build(views: Views, state: TableState): Table | undefined {
  const present = views.filter((view) => view !== undefined)
  const fragments = present.map((view) => nftablesPlanner.service(node, view))
  let table: Table | undefined
  for (const ops of buildTable({ base: nftablesPlanner.base(node), fragments }, state)) table = apply(table, ops)
  return table
}

function transactions(before: Views, after: Views, state: TableState, sizes: PartSizes): (readonly Op[])[] {
  const changes = before.flatMap((was, i) => {
    const now = after[i]
    const plan = (view: ServicePortView | undefined, unlike: ServicePortView | undefined) =>
      view && nftablesPlanner.service(node, view, { unlike })
    // Another service may have taken the frontends over.
    if (was !== undefined && now !== undefined && was.name !== now.name) {
      return [
        { before: plan(was, undefined), after: undefined },
        { before: undefined, after: plan(now, undefined) },
      ]
    }
    return [{ before: plan(was, now), after: plan(now, was) }]
  })
  return [...atOnce(diffingFragments(changes, state, sizes)).transactions]
}

/** Which backends each client can reach at each frontend: `10.1.2.3 203.0.2.1:80 > 10.64.1.2:8080`. */
function ways(table: Table, frontends: readonly Frontend[]): Set<string> {
  const found = new Set<string>()
  for (const { address = node.nodeIp, protocol, port } of frontends) {
    for (const source of SOURCES) {
      for (let choice = 0; choice < 5; choice++) {
        const packet = {
          inputInterface: 'eth0',
          source: ipBytes(source),
          destination: ipBytes(address),
          protocol: protocol,
          sourcePort: 40_000,
          destinationPort: port,
        }
        const { verdict, translated, destination, destinationPort } = walkTable(table, packet, {
          isLocalAddress: (bytes) => bytes === parseIp(node.nodeIp),
          random: (modulus) => choice % modulus,
          now: () => 0,
          dynamicElements: new Map(),
        })
        if (verdict === 'accept' && translated) {
          found.add(`${source} ${address}:${port} > ${JSON.stringify([destination, destinationPort])}`)
        }
      }
    }
  }
  return found
}

/** As many as there are places, at two points in time. Some are taken over by another service. */
const change = fc.tuple(
  ...[0, 1].map((index) =>
    fc
      .tuple(
        fc.option(arbitraryView(4, index), { nil: undefined, freq: 5 }),
        fc.option(arbitraryView(4, index), { nil: undefined, freq: 5 }),
        fc.boolean(),
      )
      .map(([before, after, isTaken]): Views => [
        before,
        after === undefined || !isTaken ? after : { ...after, name: `other/${after.name}`, service: `other-${index}` },
      ]),
  ),
)

test('in parts, a change comes to the same, and at no moment reaches a client what it reaches neither before nor after', () => {
  fc.assert(
    fc.property(change, (pairs) => {
      const [before, after] = [pairs.map(([was]) => was), pairs.map(([, now]) => now)]
      const sizes = { whole: 0, elements: 1, objects: 4 }
      const whole = { whole: Infinity, elements: 0, objects: Infinity }
      const states = [new TableState(nftablesPlanner.base(node)), new TableState(nftablesPlanner.base(node))]
      const from = build(before, states[0]!)
      build(before, states[1]!)
      const to = transactions(before, after, states[0]!, whole).reduce(apply, from)!
      const frontends = [...before, ...after].flatMap((view) => view?.frontends ?? [])
      const allowed = new Set([...ways(from!, frontends), ...ways(to, frontends)])
      let table = from
      for (const ops of transactions(before, after, states[1]!, sizes)) {
        table = apply(table, ops)
        expect([...ways(table!, frontends)].filter((way) => !allowed.has(way))).toEqual([])
      }
      expect(table!.elements).toEqual(to.elements)
      expect(table!.chains).toEqual(to.chains)
      expect(new Set(table!.sets.keys())).toEqual(new Set(to.sets.keys()))
    }),
    runs(60),
  )
})
