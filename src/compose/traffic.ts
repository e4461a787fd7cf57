// The question `traffic`: the kernel counts only while a client keeps asking.

import type { QuestionClient, Question } from '../serve/control/questions.ts'
import { allowArguments, QuestionError } from '../serve/control/questions.ts'
import type { CarriedRow, TrafficAnswer, TrafficRow } from '../serve/control/traffic.ts'
import { nextTurn } from '../lib/next-turn.ts'
import type { Clock } from '../lib/clock.ts'
import { KernelError, messageOf } from '../lib/errors.ts'
import type { Family } from '../lib/ip.ts'
import type { Logger } from '../lib/log.ts'
import { NO_TRAFFIC, type TrafficCounts } from '../traffic/traffic-counts.ts'
import type { ServicePortView } from '../model/types.ts'
import type { TrafficCounter } from '../modes/contract.ts'
import { carriedRow, FamilyRows, plus } from './traffic-rows.ts'
import { Leases, LEASE_MS } from './leases.ts'

export interface TrafficOptions {
  readonly families: readonly { readonly family: Family; readonly views: () => Iterable<ServicePortView> }[]
  readonly about: () => {
    readonly mode: string
    readonly nodeName: string
    readonly ejected: readonly string[]
    readonly without?: string | undefined
    readonly balances?: Readonly<Record<string, string>>
  }
  readonly clock: Clock
  readonly log: Logger
  /** The counter of the mode; absent: it cannot count. */
  readonly open: ((family: Family) => TrafficCounter) | undefined
}

/** An answer, and the identities of its rows: the same in every answer since counting began. */
export interface TrafficReading {
  readonly answer: TrafficAnswer
  readonly ids: readonly string[]
}

/** The last client left while the counts were read for it. */
class CountingEnded extends QuestionError {}

export class Traffic {
  readonly #options: TrafficOptions
  readonly #leases: Leases
  /** Whether metrics show the counts: then counting goes on without clients. */
  #isKept = false
  #counters: ReadonlyMap<Family, TrafficCounter> | undefined
  readonly #rows = new Map<Family, FamilyRows>()
  /** The current reading: all clients that ask meanwhile get its result. */
  #reading: Promise<TrafficReading> | undefined
  #sinceMs = 0

  constructor(options: TrafficOptions) {
    this.#options = options
    this.#leases = new Leases(options.clock, () => this.#endIfUnused())
  }

  readonly question: Question = {
    name: 'traffic',
    what: `connections, packets and bytes by service, frontend and backend; counts while the client keeps asking, at least every ${LEASE_MS / 1000} s`,
    answer: (query, client) => {
      allowArguments(query)
      this.#renewLease(client)
      return this.#read().then(({ answer }) => answer)
    },
  }

  /** Sets whether counting goes on without clients. Throws when the kernel cannot count. */
  keep(isKept: boolean): void {
    this.#isKept = isKept
    try {
      if (isKept) this.#begin()
      else this.#endIfUnused()
    } catch (error) {
      this.#isKept = false
      throw error
    }
  }

  /** The counts so far; undefined while nothing counts. */
  async read(): Promise<TrafficReading | undefined> {
    if (this.#counters === undefined) return undefined
    try {
      return await this.#read()
    } catch (error) {
      if (error instanceof CountingEnded) return undefined
      throw error
    }
  }

  /** Ends counting, also for clients that still ask. */
  close(): void {
    this.#isKept = false
    this.#leases.close()
    this.#endIfUnused()
  }

  get isCounting(): boolean {
    return this.#counters !== undefined
  }

  #renewLease(client: QuestionClient): void {
    this.#leases.renew(client)
    try {
      this.#begin()
    } catch (error) {
      this.#leases.end(client)
      throw new QuestionError(`Cannot count: ${messageOf(error)}`)
    }
  }

  #begin(): void {
    if (this.#counters !== undefined) return
    const { families, open, about, clock, log } = this.#options
    if (open === undefined) throw new Error(`the ${about().mode} mode is not counted here; see its own tools`)
    const counters = new Map<Family, TrafficCounter>()
    try {
      for (const { family } of families) counters.set(family, open(family))
    } catch (error) {
      for (const counter of counters.values()) counter.close()
      throw error
    }
    this.#counters = counters
    for (const { family } of families) this.#rows.set(family, new FamilyRows(family))
    this.#sinceMs = clock.now()
    log.info('Counting traffic, because it is asked for')
  }

  #endIfUnused(): void {
    if (this.#leases.size > 0 || this.#isKept || this.#counters === undefined) return
    this.#end()
    this.#options.log.info('Counting traffic no longer')
  }

  #end(): void {
    const counters = this.#counters ?? new Map<Family, TrafficCounter>()
    this.#counters = undefined
    this.#reading = undefined
    for (const counter of counters.values()) {
      try {
        counter.close()
      } catch (error) {
        const isGone = error instanceof KernelError && error.errno === 'ENOENT'
        if (!isGone) this.#options.log.error(error, 'Cannot end counting traffic')
      }
    }
  }

  #read(): Promise<TrafficReading> {
    if (this.#reading !== undefined) return this.#reading
    const reading = this.#readOrBeginAnew().finally(() => {
      if (this.#reading === reading) this.#reading = undefined
    })
    this.#reading = reading
    return reading
  }

  async #readOrBeginAnew(): Promise<TrafficReading> {
    const counters = this.#counters
    try {
      return await this.#readAll()
    } catch (error) {
      if (this.#counters !== counters) throw new CountingEnded('Cannot count: counting has ended', { cause: error })
      if (!(error instanceof KernelError && error.errno === 'ENOENT')) throw error
      // Another program has removed the counting table (`nft flush ruleset`): begins again.
      const reading = this.#reading
      this.#end()
      this.#begin()
      this.#reading = reading
      return this.#readAll()
    }
  }

  /** Takes many turns of the event loop: a node has thousands of pairs. */
  async #readAll(): Promise<TrafficReading> {
    const { families, about, clock } = this.#options
    const [counters, sinceMs] = [this.#counters!, this.#sinceMs]
    const { mode, nodeName, ejected, without, balances } = about()
    const all = { rows: [] as TrafficRow[], ids: [] as string[] }
    let carried: CarriedRow[] | undefined
    let other: TrafficCounts = NO_TRAFFIC
    for (const { family, views } of families) {
      const known = [...views()]
      const counted = await counters.get(family)!.read(known)
      const found = await this.#rows.get(family)!.follow(known, counted, new Set(ejected))
      for (const row of found.rows) all.rows.push(row)
      for (const id of found.ids) all.ids.push(id)
      if (counted.carried !== undefined) carried = [...(carried ?? []), ...counted.carried.map(carriedRow)]
      other = plus(other, found.other)
      await nextTurn()
    }
    const { rows, ids } = all
    return { answer: { nowMs: clock.now(), sinceMs, mode, nodeName, rows, balances, other, carried, without }, ids }
  }
}
