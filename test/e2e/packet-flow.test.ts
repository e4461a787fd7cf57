// The packet-flow table with real packets: the program under test runs on the node of the test network and watches an
// API server; every flow opens sockets in the namespace that it comes from.

import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { packetFlowCases } from '../conformance/packet-flow.cases.ts'
import { tryFlow } from '../support/flows.ts'
import { startProxy } from '../support/proxy-process.ts'
import { openRig } from '../support/rig.ts'
import type { ModeName } from '../conformance/modes.ts'
import type { Flow, PacketFlowCase } from '../conformance/packet-flow.ts'
import type { ProxyProcess } from '../support/proxy-process.ts'
import type { Rig } from '../support/rig.ts'

// Another mode can be put to the same tests; ipvs needs the kernel of test/uml.
const mode = (process.env['PROXY_MODE'] ?? 'nftables') as ModeName

// For another program (PROXY_COMMAND): rows that it is known to fail, or to die of.
const left = new RegExp(process.env['PROXY_SKIP'] ?? '^$')
const rowsToRun = packetFlowCases.filter((row) => !left.test(row.name))

let rig: Rig
beforeAll(async () => {
  rig = await openRig()
})
afterAll(() => rig[Symbol.asyncDispose]())

// One start of the program for all rows of the same settings, and all of them in the cluster at once.
for (const [settings, rows] of bySettings(rowsToRun)) {
  describe(`with the settings ${settings}`, () => {
    let proxy: ProxyProcess | undefined
    beforeAll(async () => {
      rig.cluster.put(...rows.flatMap((row) => row.objects))
      proxy = await startProxy({
        netns: rig.network.node,
        mode,
        kubeconfig: rig.cluster.kubeconfig,
        settings: rows[0]?.settings ?? {},
      })
      await rig.settled()
    })
    afterAll(async () => {
      const ended = proxy?.ended
      await proxy?.[Symbol.asyncDispose]()
      rig.cluster.remove(...rows.flatMap((row) => [...row.objects, ...row.steps.flatMap((step) => step.put ?? [])]))
      expect(ended, 'the program ran until the end').toBeUndefined()
    })
    for (const row of rows) {
      test.concurrent(row.name, async ({ skip }) => {
        if (row.modes?.includes(mode) === false) skip(`${mode} does not promise it`)
        await runRow(row)
      })
    }
  })
}

async function runRow(row: PacketFlowCase): Promise<void> {
  await expectFlows(row.flows)
  for (const step of row.steps) {
    rig.cluster.remove(...(step.remove ?? []))
    rig.cluster.put(...(step.put ?? []))
    if (step.remove !== undefined || step.put !== undefined) await rig.settled()
    await sleep((step.idleSeconds ?? 0) * 1000)
    await expectFlows(step.flows, step.when)
  }
}

/** One after the other: flows of one row may depend on each other (affinity). */
async function expectFlows(flows: readonly Flow[], when = 'at first'): Promise<void> {
  for (const flow of flows) expect(await tryFlow(rig.network, flow), when).toBeUndefined()
}

function bySettings(rows: readonly PacketFlowCase[]): Map<string, PacketFlowCase[]> {
  const groups = new Map<string, PacketFlowCase[]>()
  for (const row of rows) {
    const settings = JSON.stringify(row.settings)
    groups.set(settings, [...(groups.get(settings) ?? []), row])
  }
  return groups
}
