// Looks after destinations that take no more connections, until they are gone.

import type { Clock } from '../../lib/clock.ts'
import { KernelError } from '../../lib/errors.ts'
import { OpenConnections } from '../../ipvs/connections.ts'
import type { IpvsDiff } from '../../ipvs/diff.ts'
import { DrainList, type DrainCheck, type Drained } from '../../ipvs/drain.ts'
import type { Destination, DestinationState, IpvsOp, ServerId } from '../../ipvs/types.ts'

/** The kernel's side. */
export interface DrainDriver {
  apply(ops: readonly IpvsOp[]): { readonly bytes: number }
  readDestinations(server: ServerId): readonly DestinationState[]
  /** Passes on the content of /proc/net/ip_vs_conn, piece by piece. False: it cannot be read. */
  readConnections(each: (piece: string) => void): Promise<boolean>
}

export interface DrainsOptions {
  readonly driver: DrainDriver
  readonly clock: Clock
  /** Connections that are still open after this long are cut off. */
  readonly limitMs: number
  /** What a look has done. */
  readonly onApplied: (ops: readonly IpvsOp[]) => void
  readonly onDrained: (drained: readonly Drained[]) => void
  /** A look that failed; there will be another one. */
  readonly onError: (error: unknown) => void
}

/** Often enough that a destination leaves within a second of its last connection. */
const LOOK_EVERY_MS = 500

/** Where there are very many connections, listing them takes long: it may take this part of the time, and no more. */
const SHARE_OF_TIME = 1 / 20

/** How soon it is looked for the end of such a list. */
const LISTING_MS = 50

/** A destination about whose connections a look has to know more. */
interface Doubt {
  readonly server: ServerId
  readonly destination: Destination
}

/** Connections that are being listed. */
interface Listing {
  readonly doubts: readonly Doubt[]
  readonly connections: OpenConnections
  isDone: boolean
  /** All of them were. */
  isWhole: boolean
}

export class Drains {
  readonly #options: DrainsOptions
  #list: DrainList
  /** When it is time for the next look. */
  #dueMs = Infinity
  #listing: Listing | undefined

  constructor(options: DrainsOptions) {
    this.#options = options
    this.#list = new DrainList({ limitMs: options.limitMs })
  }

  /** What is in the kernel besides what was planned. */
  get list(): DrainList {
    return this.#list
  }

  /**
   * Begins a new list, because everything is about to be read from the kernel. Returns the old one, which knows how long
   * each destination has been waiting.
   */
  restart(): DrainList {
    const before = this.#list
    this.#list = new DrainList({ limitMs: this.#options.limitMs })
    return before
  }

  /** The operations that take the retired ones out of service, after those of the difference itself. */
  plan({ ops, retired, emptied }: IpvsDiff): IpvsOp[] {
    this.#list.note(ops)
    const retiring = this.#list.retire(retired, this.#options.clock.monotonicNow())
    return [...retiring, ...this.#list.empty(emptied)]
  }

  /** Deletes at once what has no connections, and looks again later at the others, and where that failed. */
  begin({ retired }: IpvsDiff): IpvsOp[] {
    const servers = new Set(retired.map(({ server }) => server))
    this.#dueMs = Math.min(this.#dueMs, this.#options.clock.monotonicNow() + LOOK_EVERY_MS)
    try {
      return this.#look([...servers], () => undefined)
    } catch (error) {
      this.#options.onError(error)
      return []
    }
  }

  /** Looks at what is left when it is time. Returns the time until the next look. */
  continue(): number | undefined {
    const { clock, onError } = this.#options
    if (this.#list.isEmpty) {
      this.#dueMs = Infinity
      this.#listing = undefined
      return undefined
    }
    try {
      if (this.#listing?.isDone === true) this.#settle(this.#listing)
      else if (this.#listing === undefined && this.#dueMs <= clock.monotonicNow()) this.#lookAtAll()
    } catch (error) {
      this.#dueMs = clock.monotonicNow() + LOOK_EVERY_MS
      onError(error)
    }
    return this.#listing === undefined ? Math.max(0, this.#dueMs - clock.monotonicNow()) : LISTING_MS
  }

  /** Most can be judged by what the kernel counts. Only for the rest are connections listed, while other work goes on. */
  #lookAtAll(): void {
    const { clock, driver, onError } = this.#options
    const doubts: Doubt[] = []
    const startMs = clock.monotonicNow()
    this.#dueMs = startMs + LOOK_EVERY_MS
    this.#look(this.#list.servers(), (server, destination) => void doubts.push({ server, destination }))
    if (doubts.length === 0) return
    const listing: Listing = { doubts, connections: new OpenConnections(doubts), isDone: false, isWhole: false }
    this.#listing = listing
    void driver
      .readConnections((piece) => listing.connections.add(piece))
      .then((isWhole) => (listing.isWhole = isWhole), onError)
      .finally(() => {
        listing.isDone = true
        const listedMs = clock.monotonicNow() - startMs
        this.#dueMs = clock.monotonicNow() + Math.max(LOOK_EVERY_MS, listedMs / SHARE_OF_TIME)
      })
  }

  #settle({ doubts, connections, isWhole }: Listing): void {
    this.#listing = undefined
    if (!isWhole) return
    const servers = new Set(doubts.map(({ server }) => server))
    this.#look([...servers], (server, destination) => connections.count(server, destination))
  }

  /** One that fails does not keep the others from being looked at. */
  #look(
    servers: readonly ServerId[],
    openConnections: (server: ServerId, destination: Destination) => number | undefined,
  ): IpvsOp[] {
    const done: IpvsOp[] = []
    const failures: unknown[] = []
    for (const server of servers) {
      try {
        for (const op of this.#lookAt(server, (destination) => openConnections(server, destination))) done.push(op)
      } catch (error) {
        failures.push(error)
      }
    }
    if (failures.length > 0) throw failures[0]
    return done
  }

  #lookAt(server: ServerId, openConnections: DrainCheck['openConnections']): IpvsOp[] {
    const { driver, clock, onApplied, onDrained } = this.#options
    const check = { server, destinations: this.#readDestinations(server), openConnections }
    const { ops, drained } = this.#list.check(check, clock.monotonicNow())
    if (drained.length === 0) return ops
    if (ops.length > 0) driver.apply(ops)
    onApplied(ops)
    this.#list.remove(drained)
    onDrained(drained)
    return ops
  }

  /** A server that another program has deleted has none. */
  #readDestinations(server: ServerId): readonly DestinationState[] {
    try {
      return this.#options.driver.readDestinations(server)
    } catch (error) {
      if (!(error instanceof KernelError) || (error.errno !== 'ESRCH' && error.errno !== 'ENOENT')) throw error
      return []
    }
  }
}
