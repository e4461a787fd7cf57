// Looks after destinations that take no more connections, until they are gone.

import type { Clock, Timer } from '../../lib/clock.ts'
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

/** A destination about whose connections a look has to know more. */
interface Doubt {
  readonly server: ServerId
  readonly destination: Destination
}

export class Drains {
  readonly #options: DrainsOptions
  #list: DrainList
  #timer: Timer | undefined
  #isLooking = false
  #isClosed = false

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
    try {
      return this.#look([...servers], () => undefined)
    } catch (error) {
      this.#options.onError(error)
      return []
    } finally {
      this.#schedule(LOOK_EVERY_MS)
    }
  }

  close(): void {
    this.#isClosed = true
    this.#timer?.cancel()
    this.#timer = undefined
  }

  #schedule(delayMs: number): void {
    if (this.#timer !== undefined || this.#isLooking || this.#isClosed || this.#list.isEmpty) return
    this.#timer = this.#options.clock.setTimeout(() => {
      this.#timer = undefined
      void this.#lookLater()
    }, delayMs)
  }

  /** Most can be judged by what the kernel counts. Only for the rest are connections listed, while other work goes on. */
  async #lookLater(): Promise<void> {
    const { clock, onError } = this.#options
    let listedMs = 0
    this.#isLooking = true
    try {
      const doubts: Doubt[] = []
      this.#look(this.#list.servers(), (server, destination) => void doubts.push({ server, destination }))
      if (doubts.length > 0) {
        const startMs = clock.monotonicNow()
        await this.#settle(doubts)
        listedMs = clock.monotonicNow() - startMs
      }
    } catch (error) {
      onError(error)
    }
    this.#isLooking = false
    this.#schedule(Math.max(LOOK_EVERY_MS, listedMs / SHARE_OF_TIME))
  }

  async #settle(doubts: readonly Doubt[]): Promise<void> {
    const connections = new OpenConnections(doubts)
    const isWhole = await this.#options.driver.readConnections((piece) => connections.add(piece))
    if (!isWhole || this.#isClosed) return
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
        done.push(...this.#lookAt(server, (destination) => openConnections(server, destination)))
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
