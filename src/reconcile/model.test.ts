// The queue and the pipeline against random histories: changes, failures, foreign changes, pauses and an end at any moment. The
// table is programmed as in the nftables mode, in a kernel of data.

import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { aNodeView } from '../../test/support/arbitrary-views.ts'
import { service, slice } from '../../test/support/kube-objects.ts'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { MemoryTable } from '../../test/support/memory-table.ts'
import { runs } from '../../test/support/runs.ts'
import { KernelError } from '../lib/errors.ts'
import { silentLogger } from '../lib/log.ts'
import { createMetrics } from '../metrics/metrics.ts'
import { ProblemLog } from '../model/problems.ts'
import { ServiceModel } from '../model/service-model.ts'
import type { NodeView, ServicePortChange, ServicePortName, ServicePortView } from '../model/types.ts'
import { nftablesPlanner } from '../modes/nftables/plan/planner.ts'
import type { Op } from '../nftables/types.ts'
import { ProxyHealth } from '../serve/proxy-health.ts'
import { TableProgrammer } from '../table-sync/table-programmer.ts'
import { FamilyPipeline } from './family-pipeline.ts'
import type { Programmer } from './programmer.ts'

const build = { major: '', minor: '', version: '', commit: '', treeState: '', buildDate: '' }
const node = aNodeView({ family: 4 })
const SERVICES = 3

/** A kernel that refuses when it is told to. */
class Kernel extends MemoryTable {
  refusals = 0

  override apply(ops: readonly Op[]): { bytes: number } {
    if (this.refusals > 0) {
      this.refusals--
      throw new KernelError('change a table', 'ENOMEM')
    }
    return super.apply(ops)
  }
}

/** Each call takes its time, before and behind the work. Notes every call that begins while another goes on. */
class SlowProgrammer implements Programmer {
  takesMs = 0
  overlaps = 0
  closedWhileBusy = 0
  #isBusy = false
  readonly #programmer: TableProgrammer
  readonly #clock: ManualClock

  constructor(programmer: TableProgrammer, clock: ManualClock) {
    this.#programmer = programmer
    this.#clock = clock
  }

  sync(of: NodeView, changes: readonly ServicePortChange[]) {
    return this.#alone(() => this.#programmer.sync(of, changes))
  }

  syncAll(of: NodeView, views: Iterable<ServicePortView>) {
    return this.#alone(() => this.#programmer.syncAll(of, views))
  }

  finish() {
    return this.#alone(() => this.#programmer.finish())
  }

  close() {
    if (this.#isBusy) this.closedWhileBusy++
    this.#programmer.close()
  }

  async #alone<T>(work: () => Promise<T>): Promise<T> {
    if (this.#isBusy) this.overlaps++
    this.#isBusy = true
    try {
      await this.#pass()
      const result = await work()
      await this.#pass()
      return result
    } finally {
      this.#isBusy = false
    }
  }

  async #pass(): Promise<void> {
    if (this.takesMs > 0) await new Promise<void>((resolve) => this.#clock.setTimeout(resolve, this.takesMs))
  }
}

/** What there is of a table, whatever led to it. Shared rules and chains that nothing uses any more may be left. */
function elementsOf(table: MemoryTable): Map<string, string[]> {
  return new Map(
    Array.from(table.table?.elements ?? [], ([name, elements]): [string, string[]] => [
      name,
      // The places of backends depend on the history.
      Array.from(elements.values(), ({ key, data }) =>
        name.includes('endpoints') ? `${key.slice(0, -4)} ${data}` : `${key} ${data}`,
      ).toSorted(),
    ]).filter(([, elements]) => elements.length > 0),
  )
}

type Step =
  | { readonly do: 'put'; readonly service: number; readonly hosts: readonly number[] }
  | { readonly do: 'remove'; readonly service: number }
  | { readonly do: 'refuse'; readonly times: number }
  | { readonly do: 'flush' }
  | { readonly do: 'slow'; readonly ms: number }
  | { readonly do: 'subscriber fails'; readonly times: number }
  | { readonly do: 'wait'; readonly ms: number }

const index = fc.integer({ min: 0, max: SERVICES - 1 })
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    do: fc.constant('put' as const),
    service: index,
    hosts: fc.uniqueArray(fc.integer({ min: 1, max: 5 }), { maxLength: 4 }),
  }),
  fc.record({ do: fc.constant('remove' as const), service: index }),
  fc.record({ do: fc.constant('refuse' as const), times: fc.integer({ min: 1, max: 3 }) }),
  fc.record({ do: fc.constant('flush' as const) }),
  fc.record({ do: fc.constant('slow' as const), ms: fc.integer({ min: 0, max: 60 }) }),
  fc.record({ do: fc.constant('subscriber fails' as const), times: fc.integer({ min: 1, max: 3 }) }),
  fc.record({ do: fc.constant('wait' as const), ms: fc.integer({ min: 0, max: 300 }) }),
)

function open() {
  const clock = new ManualClock()
  const kernel = new Kernel(4, nftablesPlanner.table)
  const programmer = new SlowProgrammer(new TableProgrammer({ planner: nftablesPlanner, driver: kernel, clock }), clock)
  const model = new ServiceModel({ node, problems: new ProblemLog(() => {}), allowExternalIPs: true, startedMs: 0 })
  /** What a subscriber knows that goes by changes alone. */
  const followed = new Map<ServicePortName, ServicePortView>()
  const state = { subscriberFailures: 0, inexact: 0 }
  const pipeline = new FamilyPipeline({
    node,
    model,
    programmer,
    metrics: createMetrics({ shown: [], build }),
    health: new ProxyHealth({ clock, timeoutMs: 60_000 }),
    periods: { minMs: 0, maxMs: 3_600_000, retryMs: 20, maxRetryMs: 100 },
    clock,
    log: silentLogger,
    subscribers: [
      {
        name: 'rest',
        follow({ changes }) {
          if (state.subscriberFailures > 0) {
            state.subscriberFailures--
            throw new Error('as told')
          }
          for (const { name, before, after } of changes) {
            if (followed.get(name) !== before) state.inexact++
            if (after === undefined) followed.delete(name)
            else followed.set(name, after)
          }
        },
      },
    ],
  })
  const carryOut = async (each: Step) => {
    const name = 'service' in each ? `s${each.service}` : ''
    switch (each.do) {
      case 'put':
        model.setService(service({ name, clusterIPs: [`10.96.0.${each.service}`] }))
        model.setSlice(
          slice(
            each.hosts.map((host) => `10.1.0.${host}`),
            { name: `${name}-1`, serviceName: name },
          ),
        )
        return pipeline.changed()
      case 'remove':
        model.deleteService(`default/${name}`)
        model.deleteSlice(`default/${name}-1`)
        return pipeline.changed()
      case 'refuse':
        kernel.refusals = each.times
        return
      case 'flush':
        kernel.table = undefined
        return pipeline.heal()
      case 'slow':
        programmer.takesMs = each.ms
        return
      case 'subscriber fails':
        state.subscriberFailures = each.times
        return
      case 'wait':
        await clock.advance(each.ms)
    }
  }
  return { clock, kernel, programmer, model, pipeline, followed, state, carryOut }
}

/** In pieces: a comparison takes turns of the event loop, for which this clock does not wait. */
async function pass(clock: ManualClock, ms: number): Promise<void> {
  for (let piece = 0; piece < 100; piece++) await clock.advance(ms / 100)
}

test('whatever happens: one writer at a time, nothing is lost, and the kernel has what a fresh start makes', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
      const { clock, kernel, programmer, model, pipeline, followed, state, carryOut } = open()
      pipeline.start()
      for (const each of steps) await carryOut(each)
      kernel.refusals = 0
      state.subscriberFailures = 0
      await pass(clock, 60_000)
      expect([programmer.overlaps, state.inexact, model.hasChanges]).toEqual([0, 0, false])
      expect(new Map(followed)).toEqual(new Map(Array.from(model.views(), (view) => [view.name, view])))
      expect([...pipeline.views()]).toEqual([...model.views()])
      const fresh = new MemoryTable(4, nftablesPlanner.table)
      await new TableProgrammer({ planner: nftablesPlanner, driver: fresh, clock }).syncAll(node, model.views())
      expect(elementsOf(kernel)).toEqual(elementsOf(fresh))
      await pipeline.stop()
    }),
    runs(150),
  )
})

test('an end at any moment waits for what is under way, and nothing is written afterwards', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 15 }), fc.integer({ min: 0, max: 100 }), async (steps, ms) => {
      const { clock, kernel, programmer, pipeline, carryOut } = open()
      pipeline.start()
      for (const each of steps) await carryOut(each)
      await clock.advance(ms)
      let isStopped = false
      const stopped = pipeline.stop().then(() => (isStopped = true))
      await pass(clock, 2000)
      await stopped
      expect([isStopped, programmer.overlaps, programmer.closedWhileBusy]).toEqual([true, 0, 0])
      const { table } = kernel
      for (const each of steps) if (each.do !== 'flush') await carryOut(each)
      await pass(clock, 60_000)
      expect(kernel.table).toBe(table)
      expect(programmer.overlaps).toBe(0)
    }),
    runs(100),
  )
})
