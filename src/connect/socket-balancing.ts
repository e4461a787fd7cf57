// Processes of a cgroup choose the endpoint of a cluster IP when they call connect(): their packets then carry its address
// from the first to the last, and nothing has to translate them. The proxy writes the backends into BPF maps, and attaches programs
// that read them to the cgroup.
//
// The kernel removes maps and programs when this process ends. Where an entry is missing, connect() dials the cluster IP, and the
// rules of the mode translate it as ever. So nothing has to be cleaned up, and a failure here breaks no connection.

import type { HashMap } from '../bpf/hash-map.ts'
import type { Clock } from '../lib/clock.ts'
import { mostPlaces } from '../lib/apportion.ts'
import { messageOf } from '../lib/errors.ts'
import type { Family } from '../lib/ip.ts'
import type { Logger } from '../lib/log.ts'
import { inTurns, type Steps } from '../lib/steps.ts'
import { TryAgain } from '../lib/try-again.ts'
import { mergeChanges } from '../model/merge-changes.ts'
import type { NodeView, ServicePortChange, ServicePortView } from '../model/types.ts'
import { findCgroup } from './cgroup.ts'
import { ConnectPrograms, createBackends } from './connect-programs.ts'
import { ConnectPlan } from './plan.ts'

export interface SocketBalancingOptions {
  /** `pods`, or the folder of a cgroup. */
  readonly cgroup: string
  readonly families: readonly Family[]
  /** All service ports of a family, as the kernel has acknowledged them. */
  readonly views: (family: Family) => Iterable<ServicePortView>
  /** How many cluster IPs and ports have entries now. */
  readonly onFrontends: (family: Family, count: number) => void
  /** The proxy tries again. */
  readonly onFailed: (error: unknown) => void
  readonly onMended: () => void
  readonly clock: Clock
  readonly log: Logger
}

/** Elements that are planned before other work has a turn. */
const PIECE = 4096
/** A new map has room for twice the elements, and this many more. */
const SPARE = 1024
/** The longest pause between attempts where the kernel refuses. */
const RETRY_MS = 60_000

/** A family, and what its map has. */
interface Followed {
  readonly family: Family
  readonly plan: ConnectPlan
  /** Changes that its map does not have yet. */
  pending: readonly ServicePortChange[]
  /** The map has had all service ports once. */
  isBuilt: boolean
}

export class SocketBalancing {
  readonly #options: SocketBalancingOptions
  /** A family that is missing here begins with all service ports. */
  readonly #followed = new Map<Family, Followed>()
  /** The families that had their first sync: only these have views. */
  readonly #programmed = new Set<Family>()
  readonly #again: TryAgain
  #programs: ConnectPrograms | undefined
  /** The last error. */
  #problem: string | undefined
  /** Writes the pending changes, one family after the other. */
  #working: Promise<void> | undefined

  constructor(options: SocketBalancingOptions) {
    this.#options = options
    const { clock, onFailed, onMended } = options
    const again = () => {
      for (const family of this.#programmed) this.#begin(family)
    }
    this.#again = new TryAgain({ clock, again, onFailed, onMended, mostMs: RETRY_MS })
  }

  /** After a sync. */
  follow({ family }: NodeView, changes: readonly ServicePortChange[]): void {
    const followed = this.#followed.get(family)
    this.#programmed.add(family)
    if (followed === undefined) {
      if (!this.#again.isWaiting) this.#begin(family)
      return
    }
    followed.pending = mergeChanges(followed.pending, changes)
    this.#work()
  }

  /** The folder of the cgroup that the programs are attached to. */
  get cgroup(): string | undefined {
    return this.#programs?.cgroup
  }

  /** For people. */
  status(): string {
    const { cgroup, families } = this.#options
    if (this.#programs === undefined) return `Choice at connect(): not for ${cgroup}: ${this.#problem ?? 'not yet'}`
    const counts = families.map((family) => `IPv${family}=${this.#followed.get(family)?.plan.frontends ?? 0}`)
    return `Choice at connect(): for ${this.#programs.cgroup}, cluster IP ports: ${counts.join(' ')}`
  }

  async close(): Promise<void> {
    this.#again.close()
    this.#followed.clear()
    await this.#working
    this.#closePrograms()
  }

  #begin(family: Family): void {
    const pending = Array.from(this.#options.views(family), (view) => ({
      name: view.name,
      before: undefined,
      after: view,
    }))
    this.#followed.set(family, { family, plan: new ConnectPlan(family), pending, isBuilt: false })
    this.#work()
  }

  #work(): void {
    this.#working ??= this.#workOff().finally(() => {
      this.#working = undefined
      // A change may have come between the end of the work and now.
      if (this.#next() !== undefined) this.#work()
    })
  }

  /** A failure removes maps and programs of all families. */
  async #workOff(): Promise<void> {
    for (let followed = this.#next(); followed !== undefined; followed = this.#next()) {
      const changes = followed.pending
      followed.pending = []
      try {
        await inTurns(followed.isBuilt ? this.#change(followed, changes) : this.#build(followed, changes))
        if (this.#isGivenUp(followed)) continue
        this.#options.onFrontends(followed.family, followed.plan.frontends)
        followed.isBuilt = true
        if ([...this.#programmed].every((family) => this.#followed.get(family)?.isBuilt === true))
          this.#again.succeeded()
      } catch (error) {
        this.#failed(error)
      }
    }
  }

  #next(): Followed | undefined {
    return [...this.#followed.values()].find(({ isBuilt, pending }) => !isBuilt || pending.length > 0)
  }

  /** Something failed meanwhile, or this was closed. */
  #isGivenUp(followed: Followed): boolean {
    return this.#followed.get(followed.family) !== followed
  }

  /** The programs get the map when it is complete. */
  *#build(followed: Followed, all: readonly ServicePortChange[]): Steps<void> {
    const programs = (this.#programs ??= this.#open())
    const map = yield* this.#fill(followed, all)
    if (map !== undefined) programs.use(followed.family, map)
  }

  /** Undefined when the family was given up meanwhile. */
  *#fill(followed: Followed, all: readonly ServicePortChange[]): Steps<HashMap | undefined> {
    const { family, plan } = followed
    const most = all.reduce((sum, change) => sum + mostElements(change), 0)
    const map = createBackends(family, 2 * most + SPARE)
    try {
      for (let next = 0; next < all.length && !this.#isGivenUp(followed);) {
        const piece: ServicePortChange[] = []
        for (let elements = 0; next < all.length && elements < PIECE; next++) {
          piece.push(all[next]!)
          elements += mostElements(all[next]!)
        }
        yield* map.put(plan.plan(piece).put)
        yield
      }
    } catch (error) {
      map.close()
      throw error
    }
    if (!this.#isGivenUp(followed)) return map
    map.close()
    return undefined
  }

  *#change({ family, plan }: Followed, changes: readonly ServicePortChange[]): Steps<void> {
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
    const { log, families, onFrontends } = this.#options
    this.#followed.clear()
    this.#again.failed(error)
    this.#closePrograms()
    for (const family of families) onFrontends(family, 0)
    const problem = messageOf(error)
    // The same error is logged once.
    if (problem !== this.#problem) log.error(error, 'Cannot choose endpoints at connect(), the rules do without')
    this.#problem = problem
  }

  #closePrograms(): void {
    const programs = this.#programs
    this.#programs = undefined
    programs?.close()
  }
}

/** The most elements that a service port needs: it has one cluster IP in a family. */
function mostElements({ after }: ServicePortChange): number {
  if (after === undefined) return 1
  const lists = Object.values(after.lists)
  return 1 + Math.max(0, ...lists.map((list) => (list.isWeighted ? mostPlaces(list.length) : list.length)))
}
