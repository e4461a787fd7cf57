// The Node object goes and comes back: nothing changes in between.

import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { node, external } from '../support/addresses.ts'
import { aNode } from '../support/builders.ts'
import { eventually } from '../support/eventually.ts'
import { tcpProbe } from '../support/netns/probe.ts'
import { FaultRig } from './fault-rig.ts'
import type { FaultyMode } from './modes.ts'
import { sampleObjects, steady } from './samples.ts'

export function testNodeAway(mode: FaultyMode): void {
  describe(`${mode.label}: a Node that goes and comes`, () => {
    let faulty: FaultRig
    beforeAll(async () => {
      faulty = await FaultRig.open(mode, sampleObjects)
      await faulty.start()
      await faulty.rig.settled()
    })
    afterAll(() => faulty[Symbol.asyncDispose]())

    test('the rules stay while it is away, changes are followed, and it may come back', async () => {
      const { cluster, network } = faulty.rig
      const before = await faulty.steadyRules()
      const nodePort = { address: node.ip[4], port: steady.spec.ports[0]?.nodePort ?? 0 }
      const viaNodePort = () => tcpProbe(network.external, nodePort, { from: external.ip[4] })
      for (let round = 0; round < 3; round++) {
        cluster.remove(aNode())
        await eventually('that is said', () =>
          faulty.proxy.log().split('The Node object was deleted').length - 1 > round ? undefined : 'not yet',
        )
        await sleep(300)
        await faulty.rulesBecome(before, 'the rules stay without the Node', 3000)
        expect((await viaNodePort()).kind).toBe('answered')
        expect((await faulty.proxy.health('/livez'))?.status).toBe(200)
        // Others are served as ever.
        await faulty.rig.settled()
        cluster.put(aNode())
        await faulty.rig.settled()
        await faulty.rulesBecome(before, 'the rules are the same with the Node')
        expect((await viaNodePort()).kind).toBe('answered')
        await eventually('/healthz is 200', async () =>
          (await faulty.proxy.health())?.status === 200 ? undefined : 'it is not',
        )
      }
      faulty.expectAlive()
    })
  })
}
