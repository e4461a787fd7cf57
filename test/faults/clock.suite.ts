// The wall clock of the machine jumps, as when NTP corrects it or a machine wakes up: what is to happen goes on happening.

import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { aService, aSlice } from '../support/builders.ts'
import { eventually } from '../support/eventually.ts'
import { tcpProbe } from '../support/netns/probe.ts'
import { FaultRig } from './fault-rig.ts'
import type { FaultyMode } from './modes.ts'
import { sampleObjects } from './samples.ts'

export function testClockJumps(mode: FaultyMode): void {
  describe(`${mode.label}: a clock that jumps`, () => {
    let faulty: FaultRig
    const sticky = aService({ spec: { sessionAffinity: 'ClientIP' } })
    const host = async () => {
      const answer = await tcpProbe(faulty.rig.network.sources.localPod, { address: sticky.spec.clusterIP, port: 80 })
      return answer.kind === 'answered' ? answer.greeting.host : answer.kind
    }

    beforeAll(async () => {
      const slice = aSlice(sticky, ['localB', 'localC', 'remoteA', 'remoteB'])
      faulty = await FaultRig.open(mode, [...sampleObjects, sticky, slice])
      await faulty.start()
      await faulty.rig.settled()
    })
    afterAll(() => faulty[Symbol.asyncDispose]())

    test.for([
      ['6 hours ahead', 6],
      ['36 hours back, and 30 behind', -30],
    ] as const)('%s: changes, affinity and health go on', async ([, hours]) => {
      const first = await host()
      expect(first).toMatch(/local|remote/)
      faulty.shim.shiftClock(hours)
      // A sync period ends, for both families.
      const syncs = () => faulty.proxy.log().split('SyncProxyRules complete').length
      const before = syncs()
      await eventually('both families have been looked after', () => (syncs() >= before + 2 ? undefined : 'not yet'), {
        withinMs: 8000,
      })
      faulty.expectAlive()
      const answer = await faulty.proxy.health()
      expect(answer?.status, answer?.body).toBe(200)
      const { currentTime, lastUpdated } = JSON.parse(answer?.body ?? '{}') as Record<string, string>
      expect(Math.abs(Date.parse(currentTime ?? '') - Date.now() - hours * 3_600_000)).toBeLessThan(60_000)
      expect(lastUpdated).toBeDefined()
      for (let i = 0; i < 5; i++) expect(await host()).toBe(first)
      // A change is followed as before, and so is one that comes right after.
      await faulty.rig.settled()
      await faulty.rig.settled()
      expect((await faulty.proxy.health())?.status).toBe(200)
    })
  })
}
