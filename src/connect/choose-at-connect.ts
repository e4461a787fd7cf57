// Processes of a cgroup choose the endpoint of a cluster IP when they call connect(): their packets then carry its address
// from the first to the last, and nothing has to translate them. What the model knows is put into maps, and the programs that
// look there are attached to the cgroup.
//
// All of it goes with this process, and where something is missing the call goes on as it was: the rules of the mode are what
// they always were. So nothing has to be cleaned up, and what fails here fails nobody's connection.

import type { Clock } from '../lib/clock.ts'
import { messageOf } from '../lib/errors.ts'
import { InOrder } from '../lib/in-order.ts'
import type { Family } from '../lib/ip.ts'
import type { Logger } from '../lib/log.ts'
import { inTurns, type Steps } from '../lib/steps.ts'
import type { NodeView, ServicePortChange, ServicePortView } from '../model/types.ts'
import { findCgroup } from './cgroup.ts'
import { ConnectPrograms, createBackends } from './connect-programs.ts'
import { ConnectPlan } from './plan.ts'

export interface ChooseAtConnectOptions {
  /** `pods`, or the folder of a cgroup. */
  readonly cgroup: string
  readonly families: readonly Family[]
  /** All service ports of a family, as the last sync left them. */
  readonly views: (family: Family) => Iterable<ServicePortView>
  /** So many cluster IPs and ports are chosen for now. */
  readonly onFrontends: (family: Family, count: number) => void
  readonly clock: Clock
  readonly log: Logger
}

/** Elements that are planned before others have their turn. */
const PIECE = 4096
/** Room that a map has beside that for twice as much. */
const SPARE = 1024
/** Where the kernel cannot do it, it is asked again now and then. */
const RETRY_MS = 60_000

export class ChooseAtConnect {
  readonly #options: ChooseAtConnectOptions
  readonly #order = new InOrder()
  /** What each family's map has. A family that is not here has to be told everything first. */
  readonly #plans = new Map<Family, ConnectPlan>()
  #programs: ConnectPrograms | undefined
  #retryMs = -Infinity
  /** What was wrong the last time. */
  #problem: string | undefined

  constructor(options: ChooseAtConnectOptions) {
    this.#options = options
  }

  /** After a sync: what changed, or all that there is. */
  follow({ family }: NodeView, changes: readonly ServicePortChange[], all?: Iterable<ServicePortView>): void {
    const plan = this.#plans.get(family)
    if (all === undefined && plan !== undefined) {
      if (changes.length > 0) this.#do(family, plan, () => this.#change(family, plan, changes))
    } else if (this.#options.clock.monotonicNow() >= this.#retryMs) {
      const views = Array.from(all ?? this.#options.views(family))
      const next = new ConnectPlan(family)
      this.#plans.set(family, next)
      this.#do(family, next, () => this.#build(family, next, views))
    }
  }

  /** The folder of the cgroup that it is in force for. */
  get cgroup(): string | undefined {
    return this.#programs?.cgroup
  }

  /** For people. */
  status(): string {
    const { cgroup, families } = this.#options
    if (this.#programs === undefined) return `Choice at connect(): not for ${cgroup}: ${this.#problem ?? 'not yet'}`
    const counts = families.map((family) => `IPv${family}=${this.#plans.get(family)?.frontends ?? 0}`)
    return `Choice at connect(): for ${this.#programs.cgroup}, cluster IP ports: ${counts.join(' ')}`
  }

  close(): void | Promise<void> {
    this.#retryMs = Infinity
    this.#plans.clear()
    return this.#order.do(() => this.#closePrograms())
  }

  /** One thing after the other, of what has not been given up meanwhile. What fails is taken back as a whole. */
  #do(family: Family, plan: ConnectPlan, work: () => Steps<void>): void {
    const isGivenUp = () => this.#plans.get(family) !== plan
    const done = () => {
      if (!isGivenUp()) this.#options.onFrontends(family, plan.frontends)
    }
    void this.#order.do(() => {
      if (isGivenUp()) return
      try {
        const pending = inTurns(work())
        if (pending instanceof Promise) return pending.then(done).catch((error: unknown) => this.#failed(error))
        done()
      } catch (error) {
        this.#failed(error)
      }
    })
  }

  *#build(family: Family, plan: ConnectPlan, views: readonly ServicePortView[]): Steps<void> {
    const programs = (this.#programs ??= this.#open())
    const map = createBackends(family, 2 * mostElements(views) + SPARE)
    try {
      for (let next = 0; next < views.length;) {
        const changes: ServicePortChange[] = []
        for (let elements = 0; next < views.length && elements < PIECE; next++) {
          const after = views[next]!
          changes.push({ name: after.name, before: undefined, after })
          elements += mostElements([after])
        }
        yield* map.put(plan.plan(changes).put)
        yield
      }
      programs.use(family, map)
    } catch (error) {
      map.close()
      throw error
    }
  }

  *#change(family: Family, plan: ConnectPlan, changes: readonly ServicePortChange[]): Steps<void> {
    const programs = this.#programs!
    const { put, deleted } = plan.plan(changes)
    while (!(yield* programs.map(family).put(put))) {
      const former = programs.map(family)
      programs.use(family, yield* former.grown(2 * former.options.capacity + put.length))
    }
    yield* programs.map(family).delete(deleted)
  }

  #open(): ConnectPrograms {
    const { cgroup, families, log } = this.#options
    const programs = new ConnectPrograms(findCgroup(cgroup), families)
    log.info('Endpoints of cluster IPs are chosen at connect()', { cgroup: programs.cgroup })
    this.#problem = undefined
    return programs
  }

  #failed(error: unknown): void {
    const { log, clock, families, onFrontends } = this.#options
    this.#plans.clear()
    this.#closePrograms()
    for (const family of families) onFrontends(family, 0)
    this.#retryMs = clock.monotonicNow() + RETRY_MS
    const problem = messageOf(error)
    // The same again is no news.
    if (problem !== this.#problem) log.error(error, 'Cannot choose endpoints at connect(), the rules do without')
    this.#problem = problem
  }

  #closePrograms(): void {
    const programs = this.#programs
    this.#programs = undefined
    programs?.close()
  }
}

/** So many elements at most: a service port has one cluster IP in a family. */
function mostElements(views: readonly ServicePortView[]): number {
  return views.reduce((sum, { backends }) => sum + 1 + backends.length, 0)
}
