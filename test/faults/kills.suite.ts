// kill -9 at any moment: of a start, and of a sync. The next start makes everything what it would be had nothing happened,
// and connections of services that did not change notice nothing.
//
// FAULT_KILLS=1000 makes it a thousand times; FAULT_SEED names another course of events.

import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { aService, aSlice } from '../support/builders.ts'
import { Cgroup, whyNoCgroup } from '../support/cgroup.ts'
import { eventually } from '../support/eventually.ts'
import { startTraffic } from '../support/steady-traffic.ts'
import { patience } from '../support/patience.ts'
import type { ApiObject } from '../support/builders.ts'
import { FaultRig } from './fault-rig.ts'
import type { FaultyMode } from './modes.ts'
import { seededRandom } from './random.ts'
import { sampleObjects, steadyTargets } from './samples.ts'

const seed = Number(process.env['FAULT_SEED'] ?? 20_261_115)

/** What changes: some services exist in some states and not in others, with these endpoints or those. */
const volatile = Array.from({ length: 6 }, (_, i) =>
  aService({ type: i % 2 === 0 ? 'NodePort' : 'ClusterIP', families: [4, 6] }),
)
const states: readonly (readonly ApiObject[])[] = [0, 1, 2].map((state) =>
  volatile.flatMap((service, i) => {
    if ((i + state) % 3 === 0) return []
    const hosts = (i + state) % 2 === 0 ? (['localB', 'remoteA'] as const) : (['localC', 'remoteB'] as const)
    const slices = ([4, 6] as const).map((family) =>
      aSlice(service, hosts, { family, name: `${service.metadata.name}-${family}` }),
    )
    return [service, ...slices]
  }),
)
const everything = states.flat()

export interface KillOptions {
  /** `--socket-balancing` for the pod of the clients. */
  readonly balancesSockets?: true
}

export function testKills(mode: FaultyMode, ordinaryKills: number, { balancesSockets }: KillOptions = {}): void {
  const kills = Number(process.env['FAULT_KILLS'] ?? ordinaryKills)
  const isLong = process.env['FAULT_KILLS'] !== undefined
  const label = `${mode.label}${balancesSockets === true ? ', sockets choose' : ''}: kill -9`
  const reason = balancesSockets === true ? whyNoCgroup() : undefined
  if (reason !== undefined) {
    test(label, ({ skip }) => skip(reason))
    return
  }
  describe(label, () => {
    let faulty: FaultRig
    let cgroup: Cgroup | undefined
    const expected: string[] = []
    beforeAll(async () => {
      if (balancesSockets === true) cgroup = new Cgroup(`kube-proxy-ts-kills-${process.pid}-${mode.label}`)
      const more = cgroup === undefined ? [] : [`--socket-balancing=${cgroup.folder}`]
      faulty = await FaultRig.open({ ...mode, args: [...mode.args, ...more] }, sampleObjects)
      faulty.rig.network.sources.localPod.clients = cgroup
      for (const state of states.keys()) {
        put(state)
        expected.push(await faulty.fromScratch())
      }
    }, 120_000 * patience())
    afterAll(async () => {
      await faulty[Symbol.asyncDispose]()
      cgroup?.[Symbol.dispose]()
    })

    function put(state: number): void {
      const { cluster } = faulty.rig
      const wanted = states[state] ?? []
      cluster.remove(
        ...everything.filter((object) => !wanted.some((each) => each.metadata.name === object.metadata.name)),
      )
      cluster.put(...wanted)
    }

    test(`${kills} times (seed ${seed})`, { timeout: 60_000 + kills * 8000 * patience() }, async () => {
      const random = seededRandom(seed)
      const clients = [faulty.rig.network.sources.localPod, faulty.rig.network.sources.external]
      const unconnected = balancesSockets === true ? clients.slice(0, 1) : []
      const traffic =
        mode.carriedBy === 'kernel' ? await startTraffic(clients, steadyTargets, { unconnected }) : undefined
      let startMs = 500
      for (let kill = 0; kill < kills;) {
        // In the middle of changes.
        const state = Math.floor(random() * states.length)
        put(state)
        await sleep(random() * 40)
        if (random() < 0.3) put((state + 1) % states.length)
        await sleep(random() * 10)
        await faulty.stop()
        kill++
        // In the middle of a start, with other work to do.
        const last = Math.floor(random() * states.length)
        put(last)
        if (kill < kills) {
          faulty.spawn()
          await sleep(random() * startMs * 1.2)
          await faulty.stop()
          kill++
        }
        const started = performance.now()
        await faulty.start()
        startMs = performance.now() - started
        await faulty.rulesBecome(expected[last] ?? '', `the rules are right after kill ${kill} (seed ${seed})`)
        if (isLong && kill % 50 < 2) process.stderr.write(`${mode.label}: ${kill} of ${kills} kills (seed ${seed})\n`)
      }
      if (cgroup !== undefined) {
        await eventually('sockets choose again', async () => {
          const status = (await faulty.proxy.ask('/statusz'))?.body ?? ''
          return status.includes(`cgroup ${cgroup!.folder}, frontends: IPv4=`) ? undefined : faulty.proxy.logTail(5)
        })
      }
      const report = await traffic?.stop()
      expect(report?.losses ?? []).toEqual([])
      // One for each socket that waits for an answer at that moment: its client asks again.
      expect(report?.strays ?? 0).toBeLessThanOrEqual(kills * 2)
      if (report !== undefined) expect(report.connections).toBeGreaterThan(kills)
    })
  })
}
