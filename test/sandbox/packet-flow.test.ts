// The packet-flow table (test/conformance) end to end: in the sandbox, through its API server, with its nodes and pods, in
// every mode. What a sandbox cannot have is told in table/left-out.ts.

import { execFileSync } from 'node:child_process'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { isPromisedBy, type ModeName } from '../conformance/modes.ts'
import { packetFlowCases } from '../conformance/packet-flow.cases.ts'
import { ranges } from '../support/addresses.ts'
import { whyNotRun } from '../support/proxy-process.ts'
import { enterMachine, leftovers, makeRoot, removeRoot } from './support/machine.ts'
import { modes } from './support/modes.ts'
import { isRefused, whyLeftOut, withoutImpossibleFlows } from './table/left-out.ts'
import { TableRun } from './table/table-run.ts'
import type { PacketFlowCase } from '../conformance/packet-flow.ts'

/** A row waits for the whole table. */
const minutes = 60_000
/** SANDBOX_ROWS picks rows by their names. */
const chosen = new RegExp(process.env['SANDBOX_ROWS'] ?? '')
const table = packetFlowCases.filter((row) => chosen.test(row.name)).map(withoutImpossibleFlows)

enterMachine()
// The machine is a whole crowd of clients.
const crowdRoute = (verb: 'add' | 'del') => {
  for (const range of Object.values(ranges.crowd)) execFileSync('ip', ['route', verb, 'local', range, 'dev', 'lo'])
}

for (const mode of modes) {
  const obstacle = whyNotRun(mode as ModeName)
  if (obstacle !== undefined) {
    test(`the packet-flow table in mode ${mode}`, ({ skip }) => skip(obstacle))
    continue
  }
  describe(`mode ${mode}`, () => {
    const rows = table.filter((row) => isPromisedBy(mode as ModeName, row))
    const root = makeRoot()
    let run: TableRun
    beforeAll(() => {
      crowdRoute('add')
      run = new TableRun(
        root,
        mode,
        rows.filter((row) => whyLeftOut(row) === undefined),
      )
    })
    afterAll(async () => {
      await run.ended
      crowdRoute('del')
      expect(run.endedProxies).toEqual([])
      expect(leftovers(root)).toEqual([])
      removeRoot(root)
    }, 2 * minutes)

    for (const row of rows) {
      test(row.name, { timeout: 10 * minutes }, async ({ skip }) => {
        const reason = whyLeftOut(row)
        if (reason !== undefined) return skip(reason)
        expect(await run.complaints(row)).toEqual([])
      })
    }
  })
}

test('the table is tried but for two rows and for a few flows', () => {
  expect(packetFlowCases.filter((row) => isRefused(row) || whyLeftOut(row) !== undefined)).toHaveLength(2)
  const flowsOf = (rows: readonly PacketFlowCase[]) =>
    rows.flatMap((row) => [...row.flows, ...row.steps.flatMap((step) => step.flows)])
  const all = flowsOf(packetFlowCases)
  const kept = flowsOf(packetFlowCases.map(withoutImpossibleFlows))
  expect(all.length - kept.length).toBe(6)
})
