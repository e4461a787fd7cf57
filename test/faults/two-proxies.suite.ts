// Two proxies of the same mode on one node, as during a rollout with overlap, or by mistake: they do not fight for ever.

import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { aService, aSlice } from '../support/builders.ts'
import { eventually } from '../support/eventually.ts'
import { tcpProbe } from '../support/netns/probe.ts'
import { patience } from '../support/patience.ts'
import { FaultRig } from './fault-rig.ts'
import type { FaultyMode } from './modes.ts'
import { sampleObjects, steadyTargets } from './samples.ts'

/** Of one processor, while nothing changes. */
const MOST_CPU = 0.25
const LOOK_MS = 2500

export function testTwoProxies(mode: FaultyMode): void {
  describe(`${mode.label}: two proxies on one node`, () => {
    let faulty: FaultRig
    let before: string
    beforeAll(async () => {
      faulty = await FaultRig.open(mode, sampleObjects)
      before = await faulty.fromScratch()
    })
    afterAll(() => faulty[Symbol.asyncDispose]())

    test('they agree, do not keep each other busy, and each does when the other is gone', async () => {
      const { cluster, network } = faulty.rig
      const web = aService({ families: [4, 6] })
      const change = [web, ...([4, 6] as const).map((family) => aSlice(web, ['localB'], { family }))]
      const kind = async (address: string) =>
        (await tcpProbe(network.sources.localPod, { address, port: 80 }, { timeoutMs: 100 * patience() })).kind
      const isServed = () =>
        eventually(
          'the change is served',
          async () => {
            const found = await kind(web.spec.clusterIP)
            return found === 'answered' ? undefined : found
          },
          { withinMs: 10_000 },
        )
      const first = faulty.proxy
      await using second = await faulty.startSecond()
      await eventually(
        'both have programmed',
        () => (/SyncProxyRules complete/.test(second.log()) ? undefined : 'the second has not'),
        { withinMs: 10_000 },
      )
      cluster.put(...change)
      await isServed()
      cluster.remove(...change)
      if (mode.carriedBy === 'process') {
        // Each has listeners of its own, so they cannot agree: the one that was there first gives way.
        await eventually(
          'the first has noticed the second',
          () => (/has taken over/.test(first.log()) ? undefined : 'not yet'),
          { withinMs: 20_000 },
        )
        expect(second.log()).not.toMatch(/has taken over/)
      }
      if (mode.carriedBy === 'kernel') await faulty.rulesBecome(before, 'the change is taken back')
      // What they did about the change may go on for a moment.
      await eventually('they are at rest', async () => {
        const shares = await sharesOfProcessor([first.pid, second.pid])
        if (Math.max(...shares) < MOST_CPU) return undefined
        const logs = [first, second].map((each) => each.logTail(12))
        return [`shares of a processor: ${shares.join(', ')}`, ...logs].join('\n')
      })
      expect([first.ended, second.ended]).toEqual([undefined, undefined])
      if (mode.carriedBy === 'kernel') await faulty.rulesBecome(before, 'two proxies have the rules of one')
      expect((await tcpProbe(network.sources.localPod, steadyTargets.tcp)).kind).toBe('answered')
      // The one that came last is alone.
      await faulty.stop()
      cluster.put(...change)
      await isServed()
      expect((await tcpProbe(network.sources.localPod, steadyTargets.tcp)).kind).toBe('answered')
      // And the one that comes after it.
      await second.stop()
      cluster.remove(...change)
      await faulty.start()
      await faulty.rulesBecome(before, 'one proxy has the rules of one')
    })
  })
}

/** What each process uses, for a while. */
async function sharesOfProcessor(pids: readonly number[]): Promise<number[]> {
  const before = pids.map(cpuMs)
  const began = performance.now()
  await sleep(LOOK_MS)
  const passedMs = performance.now() - began
  return pids.map((pid, i) => (cpuMs(pid) - before[i]!) / passedMs)
}

/** What the process has used, user and system. */
function cpuMs(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) * 10
}
