// Looks after destinations that take no more connections, until they are gone.

import type { Clock, Timer } from '../../lib/clock.ts'
import { KernelError } from '../../lib/errors.ts'
import { OpenConnections } from '../../ipvs/connections.ts'
import type { IpvsDiff } from '../../ipvs/diff.ts'
import { DrainList, type Drained } from '../../ipvs/drain.ts'
import type { DestinationId, DestinationState, IpvsOp, ServerId } from '../../ipvs/types.ts'

/** The kernel's side. */
export interface DrainDriver {
  apply(ops: readonly IpvsOp[]): { readonly bytes: number }
  readDestinations(server: ServerId): readonly DestinationState[]
  /** The content of /proc/net/ip_vs_conn; undefined when it cannot be read. */
  readConnections(): string | undefined
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

export class Drains {
  readonly #options: DrainsOptions
  #list: DrainList
  #timer: Timer | undefined

  constructor(options: DrainsOptions) {
    this.#options = options
    this.#list = new DrainList({ limitMs: options.limitMs })
  }

  /** What is in the kernel besides what was planned. */
  get list(): DrainList {
    return this.#list
  }

  /** Forgets all, but for since when: what the kernel has is about to be told. */
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

  /** Deletes at once what has no connections, and looks again later at the others. */
  begin({ retired }: IpvsDiff): IpvsOp[] {
    const servers = new Set(retired.map(({ server }) => server))
    const ops = this.#look([...servers])
    this.#schedule()
    return ops
  }

  close(): void {
    this.#timer?.cancel()
    this.#timer = undefined
  }

  #schedule(): void {
    if (this.#timer !== undefined || this.#list.isEmpty) return
    this.#timer = this.#options.clock.setTimeout(() => {
      this.#timer = undefined
      try {
        this.#look(this.#list.servers())
      } catch (error) {
        this.#options.onError(error)
      }
      this.#schedule()
    }, LOOK_EVERY_MS)
  }

  /** One that fails does not keep the others from being looked at. */
  #look(servers: readonly ServerId[]): IpvsOp[] {
    const connections = new LazyConnections(this.#options.driver)
    const done: IpvsOp[] = []
    const failures: unknown[] = []
    for (const server of servers) {
      try {
        done.push(...this.#lookAt(server, connections))
      } catch (error) {
        failures.push(error)
      }
    }
    if (failures.length > 0) throw failures[0]
    return done
  }

  #lookAt(server: ServerId, connections: LazyConnections): IpvsOp[] {
    const { driver, clock, onApplied, onDrained } = this.#options
    const check = {
      server,
      destinations: this.#readDestinations(server),
      openConnections: (destination: DestinationId) => connections.count(server, destination),
    }
    const { ops, drained } = this.#list.check(check, clock.monotonicNow())
    if (drained.length === 0) return ops
    if (ops.length > 0) driver.apply(ops)
    onApplied(ops)
    this.#list.remove(drained)
    onDrained(drained)
    return ops
  }

  /** A server that somebody has deleted has none. */
  #readDestinations(server: ServerId): readonly DestinationState[] {
    try {
      return this.#options.driver.readDestinations(server)
    } catch (error) {
      if (!(error instanceof KernelError) || (error.errno !== 'ESRCH' && error.errno !== 'ENOENT')) throw error
      return []
    }
  }
}

/** Read once for all servers of a look, and only if somebody asks: the file has a line for each connection. */
class LazyConnections {
  readonly #driver: DrainDriver
  #read: { readonly open: OpenConnections | undefined } | undefined

  constructor(driver: DrainDriver) {
    this.#driver = driver
  }

  count(server: ServerId, destination: DestinationId): number | undefined {
    if (this.#read === undefined) {
      const text = this.#driver.readConnections()
      this.#read = { open: text === undefined ? undefined : new OpenConnections(text) }
    }
    return this.#read.open?.count(server, destination)
  }
}
