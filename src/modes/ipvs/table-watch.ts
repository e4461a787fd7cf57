// Looks now and then whether the virtual servers are those that we left: the kernel does not tell when another program
// changes IPVS. One look serves both families.

import type { Clock, Timer } from '../../lib/clock.ts'
import type { Family } from '../../lib/ip.ts'
import { IpvsAudit, TableCounter } from '../../ipvs/audit.ts'
import type { IpvsOp, ServerState } from '../../ipvs/types.ts'

/** The kernel's table, /proc/net/ip_vs, of both families. False: it cannot be read. */
export interface TableFile {
  /** While other work goes on. */
  read(each: (piece: string) => void): Promise<boolean>
  /** While nothing else happens. */
  readNow(each: (piece: string) => void): boolean
}

export interface IpvsTableWatchOptions {
  readonly table: TableFile
  readonly clock: Clock
  /** Called when another program changed virtual servers. */
  readonly onForeignChange: (family: Family) => void
  readonly onError: (error: unknown) => void
}

/** How soon another program's change is noticed. */
const LOOK_EVERY_MS = 5000

/** After so many looks during which we made changes ourselves, the next is one that we cannot disturb. */
const DISTURBED_LOOKS = 2

export class IpvsTableWatch {
  readonly #options: IpvsTableWatchOptions
  readonly #families = new Map<Family, FamilyAudit>()
  #timer: Timer | undefined
  #isClosed = false
  #disturbed = 0

  constructor(options: IpvsTableWatchOptions) {
    this.#options = options
  }

  /** Called with the changes of a family. */
  of(family: Family): FamilyAudit {
    let audit = this.#families.get(family)
    if (audit === undefined) this.#families.set(family, (audit = new FamilyAudit()))
    this.#schedule()
    return audit
  }

  close(): void {
    this.#isClosed = true
    this.#timer?.cancel()
  }

  #schedule(): void {
    if (this.#isClosed) return
    this.#timer ??= this.#options.clock.setTimeout(() => {
      void this.#look()
        .catch((error: unknown) => this.#options.onError(error))
        .finally(() => {
          this.#timer = undefined
          this.#schedule()
        })
    }, LOOK_EVERY_MS)
  }

  async #look(): Promise<void> {
    const { table, onForeignChange } = this.#options
    const watched = [...this.#families].filter(([, audit]) => audit.isInForce)
    if (watched.length === 0) return
    const counter = new TableCounter()
    const before = new Map(watched.map(([family, audit]) => [family, audit.changes]))
    const isWhole =
      this.#disturbed >= DISTURBED_LOOKS
        ? table.readNow((piece) => counter.add(piece))
        : await table.read((piece) => counter.add(piece))
    if (!isWhole || this.#isClosed) return
    const undisturbed = watched.filter(([family, audit]) => audit.changes === before.get(family))
    this.#disturbed = undisturbed.length === watched.length ? 0 : this.#disturbed + 1
    for (const [family, audit] of undisturbed) {
      if (audit.isInForce && !audit.check(counter.counts(family))) onForeignChange(family)
    }
  }
}

/** The expected table of one family. Unknown until the first full sync, and after a failure. */
export class FamilyAudit {
  readonly #audit = new IpvsAudit()
  isInForce = false
  /** How many times the expectation changed. */
  changes = 0

  /** Everything was read from the kernel; what is done about it comes by note(). */
  reset(actual: Iterable<ServerState>): void {
    this.#audit.reset(actual)
    this.changes++
  }

  note(ops: readonly IpvsOp[]): void {
    this.#audit.note(ops)
    this.changes++
  }

  check(actual: Parameters<IpvsAudit['check']>[0]): boolean {
    return this.#audit.check(actual)
  }
}
