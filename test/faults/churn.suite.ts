// Services come, change and go for a long time: memory, descriptors and kernel objects are no more at the end.
//
// CHURN_MINUTES=10 makes it ten minutes.

import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { aService, aSlice, type ApiObject } from '../support/builders.ts'
import { tcpProbe, udpProbe } from '../support/netns/probe.ts'
import { patience } from '../support/patience.ts'
import { FaultRig } from './fault-rig.ts'
import { footprint, type FaultyMode, type Footprint } from './modes.ts'
import { seededRandom } from './random.ts'
import { sampleObjects } from './samples.ts'

/** Memory may be given back late; what leaks grows with every change. */
const MOST_GROWTH_MB = 24
/** Rules that services share stay until some of them are unused. */
const MOST_LINGERING = 60

/** Those of clients that came last are still there. */
const MOST_FLOWS = 499

const shapes = Array.from({ length: 40 }, (_, i) =>
  aService({
    type: (['ClusterIP', 'NodePort', 'LoadBalancer'] as const)[i % 3]!,
    families: [4, 6],
    ports: [{ name: 'tcp' }, { name: 'udp', protocol: 'UDP' }],
    spec: {
      ...(i % 4 === 0 ? { sessionAffinity: 'ClientIP' } : {}),
      ...(i % 3 === 2 ? { externalTrafficPolicy: 'Local' } : {}),
    },
  }),
)
const hosts = ['localA', 'localB', 'localC', 'remoteA', 'remoteB'] as const

export function testChurn(mode: FaultyMode, ordinarySeconds: number): void {
  const minutes = process.env['CHURN_MINUTES']
  const seconds = minutes === undefined ? ordinarySeconds : Number(minutes) * 60
  describe(`${mode.label}: churn`, () => {
    let faulty: FaultRig
    const random = seededRandom(7)
    let changes = 0
    beforeAll(async () => {
      faulty = await FaultRig.open(mode, sampleObjects)
      await faulty.start()
      await faulty.rig.settled()
    })
    afterAll(() => faulty[Symbol.asyncDispose]())

    /** One change, and now and then a client. */
    async function step(): Promise<void> {
      const { cluster, network } = faulty.rig
      const service = shapes[Math.floor(random() * shapes.length)]!
      const { name } = service.metadata
      const slices = ([4, 6] as const).map((family) => {
        const chosen = hosts.filter(() => random() < 0.5)
        return aSlice(service, chosen, { family, name: `${name}-${family}` })
      })
      if (random() < 0.3) cluster.remove(service, ...slices)
      else cluster.put(service, ...slices)
      changes++
      if (random() < 0.1) {
        const to = { address: service.spec.clusterIP, port: 80 }
        await Promise.all([tcpProbe, udpProbe].map((probe) => probe(network.sources.localPod, to, { timeoutMs: 20 })))
      }
      await sleep(8)
    }

    async function churnFor(ms: number): Promise<void> {
      for (const end = performance.now() + ms; performance.now() < end;) {
        faulty.expectAlive()
        await step()
      }
      faulty.rig.cluster.remove(...shapes.flatMap(objectsOf))
      await faulty.rig.settled(30_000)
      await faulty.steadyRules()
    }

    /** The least of some seconds, for garbage is collected now and then; sooner when it is no more than allowed. */
    async function leastFootprint(isLittle: (now: Footprint) => boolean): Promise<Footprint> {
      const all: Footprint[] = []
      for (;;) {
        all.push(footprint(mode, faulty.rig.network.node, faulty.proxy.pid))
        const least = {
          ...all.at(-1)!,
          rssMb: Math.min(...all.map(({ rssMb }) => rssMb)),
          fds: Math.min(...all.map(({ fds }) => fds)),
        }
        if (all.length === 6 || isLittle(least)) return least
        await sleep(500)
      }
    }

    test(`${seconds} seconds of it`, { timeout: seconds * 1000 + 120_000 * patience() }, async () => {
      // What is there to stay: code that was compiled, pools that were filled.
      await churnFor(Math.max(6000, seconds * 100))
      const before = await leastFootprint(() => false)
      const most = {
        fds: before.fds + 2,
        threads: before.threads + 1,
        // What it has at rest depends on when it last gave memory back, which is once in a minute at most.
        rssMb: before.highestRssMb + MOST_GROWTH_MB,
        kernelObjects: before.kernelObjects + MOST_LINGERING,
        nftObjects: before.nftObjects + 2 * MOST_LINGERING,
        flows: before.flows + MOST_FLOWS,
      }
      const excess = (now: Footprint) =>
        Object.entries(most).filter(([name, value]) => now[name as keyof Footprint] > value)
      const changesBefore = changes
      await churnFor(seconds * 1000)
      const after = await leastFootprint((now) => excess(now).length === 0)
      console.log(
        `${mode.label}: ${changes - changesBefore} changes in ${seconds} s:`,
        JSON.stringify({ before, after }),
      )
      expect(excess(after), 'no more than this').toEqual([])
      faulty.expectAlive()
    })
  })
}

function objectsOf(service: (typeof shapes)[number]): ApiObject[] {
  const { name } = service.metadata
  return [service, ...([4, 6] as const).map((family) => aSlice(service, [], { family, name: `${name}-${family}` }))]
}
