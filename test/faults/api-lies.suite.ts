// An API server that lies, or falters in every way: no crash, no busy loop, no lost rules, and the truth in the end.

import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { STATUS, type Misbehaviour } from '../support/api-server/faults.ts'
import type { TestApiServer } from '../support/api-server/api-server.ts'
import type { ApiObject as ServedObject } from '../support/api-server/objects.ts'
import { eventually } from '../support/eventually.ts'
import { startTraffic } from '../support/steady-traffic.ts'
import { FaultRig } from './fault-rig.ts'
import type { FaultyMode } from './modes.ts'
import { sampleObjects, steady, steadyTargets } from './samples.ts'

interface Lie {
  readonly name: string
  /** Begins; what is told to the server goes on until heal(). */
  readonly tell: (server: TestApiServer) => void
  /** What has to be asked for before it is told. Absent: it is told at once, in watches that run. */
  readonly answers?: 'list' | 'watch'
  /** Whether the rules follow it, as they must: nothing tells it from the truth. */
  readonly isBelieved?: boolean
}

const always = { times: Number.POSITIVE_INFINITY }

/** How long each goes on. A program that asks again without a pause does so at once, thousands of times. */
const LIE_MS = 1000

/** From now on each watch goes wrong, and so do those that run: they end. */
function watches(what: Misbehaviour): Pick<Lie, 'answers' | 'tell'> {
  const tell = (server: TestApiServer) => {
    server.fail({ on: 'watch', ...always, what })
    server.endWatches()
  }
  return { answers: 'watch', tell }
}

/** From now on each list goes wrong, and there has to be one: history is forgotten. */
function lists(what: Misbehaviour): Pick<Lie, 'answers' | 'tell'> {
  const tell = (server: TestApiServer) => {
    server.fail({ on: 'list', ...always, what })
    server.expire()
  }
  return { answers: 'list', tell }
}

const lies: readonly Lie[] = [
  {
    name: 'answers each watch with 410',
    ...watches({ type: 'errorFrame', status: STATUS.expired }),
  },
  { name: 'ends each watch at once', ...watches({ type: 'end' }) },
  { name: 'answers everything with 500', ...watches({ type: 'status', status: STATUS.internal }) },
  { name: 'answers each list with 410', ...lists({ type: 'status', status: STATUS.expired }) },
  { name: 'cuts each list short', ...lists({ type: 'cut', afterBytes: 700 }) },
  {
    name: 'gives lists a version from the future',
    ...lists({ type: 'version', version: '999999999' }),
  },
  { name: 'gives lists a version that is none', ...lists({ type: 'version', version: 'yesterday' }) },
  { name: 'gives lists no version', ...lists({ type: 'version', version: '' }) },
  { name: 'answers lists with JSON', ...lists({ type: 'json' }) },
  { name: 'answers watches with JSON', ...watches({ type: 'json' }) },
  {
    name: 'calls JSON protobuf',
    ...lists({ type: 'garbage', bytes: Buffer.from('{"kind":"ServiceList","metadata":{},"items":[]}') }),
  },
  {
    name: 'sends garbage in each watch',
    ...watches({ type: 'garbage', bytes: Buffer.alloc(64, 0xff) }),
  },
  {
    name: 'cuts frames of a watch short',
    tell: (server) => server.sendTruncated(steady as unknown as ServedObject),
  },
  {
    name: 'repeats everything in each watch',
    tell: (server) => {
      for (let i = 0; i < 3; i++) server.repeatEvents()
    },
  },
  { name: 'goes back in history', tell: (server) => server.store.loseHistory(5) },
  { name: 'lists nothing after having listed all', ...lists({ type: 'empty' }), isBelieved: true },
]

/** Of all kinds together. Without a pause there would be thousands. */
const MOST_REQUESTS_PER_SECOND = 25

export function testApiLies(mode: FaultyMode, only = /./): void {
  describe(`${mode.label}: an API server that lies`, () => {
    let faulty: FaultRig
    let before: string
    beforeAll(async () => {
      faulty = await FaultRig.open(mode, sampleObjects, { api: { bookmarkMs: 500 } })
      await faulty.start()
      await faulty.rig.settled()
      before = await faulty.steadyRules()
    })
    afterAll(() => faulty[Symbol.asyncDispose]())
    // A proxy of its own for each: one that was lied to is slow to ask again.
    beforeEach(async () => {
      await faulty.stop()
      await faulty.start()
    })

    test.for(lies.filter(({ name }) => only.test(name)))('$name', async ({ tell, answers, isBelieved = false }) => {
      const { server } = faulty.rig.cluster
      const traffic =
        isBelieved || mode.carriedBy === 'process'
          ? undefined
          : await startTraffic([faulty.rig.network.sources.localPod], steadyTargets)
      const requests = server.requests.length
      const began = performance.now()
      tell(server)
      if (answers !== undefined) {
        const isAsked = () =>
          server.requests.slice(requests).some(({ query }) => 'watch' in query === (answers === 'watch'))
        await eventually('it is asked', () => (isAsked() ? undefined : `no ${answers} was`))
      }
      await sleep(LIE_MS)
      const seconds = (performance.now() - began) / 1000
      faulty.expectAlive()
      expect((server.requests.length - requests) / seconds).toBeLessThan(MOST_REQUESTS_PER_SECOND)
      expect((await faulty.proxy.health('/livez'))?.status).toBe(200)
      if (!isBelieved) await faulty.rulesBecome(before, 'the rules stay')
      server.heal()
      // A proxy that believed it has no reason to ask again.
      if (isBelieved) server.expire()
      await faulty.rig.settled(40_000)
      await faulty.rulesBecome(before, 'the rules are right in the end')
      expect((await traffic?.stop())?.losses ?? []).toEqual([])
      faulty.expectAlive()
    })

    const patient = 'a Retry-After of a year is not waited for'
    if (!only.test(patient)) return
    test(patient, async () => {
      const { server } = faulty.rig.cluster
      const from = faulty.proxy.log().length
      const what = { type: 'status', status: STATUS.tooManyRequests, retryAfterSeconds: 365 * 86_400 } as const
      server.fail({ on: 'watch', times: 4, what })
      server.endWatches()
      const waits = () => {
        const said = faulty.proxy.log().slice(from)
        return Array.from(said.matchAll(/retryInMs=(\d+)/g), ([, ms]) => Number(ms))
      }
      await eventually('each watch is to be tried again', () =>
        waits().length >= 4 ? undefined : `${waits().length} are`,
      )
      server.heal()
      faulty.expectAlive()
      expect(Math.max(...waits())).toBeLessThanOrEqual(15 * 60_000)
      await faulty.rulesBecome(before, 'the rules stay')
    })
  })
}
