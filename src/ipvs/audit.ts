// Whether somebody else added or removed virtual servers or destinations. IPVS tells nobody of changes, but its table is
// one file, /proc/net/ip_vs, and counting its lines is cheap.

import type { Family } from '../lib/ip.ts'
import type { IpvsOp } from './types.ts'

interface Counts {
  readonly servers: number
  readonly destinations: number
}

export class IpvsAudit {
  readonly #family: Family
  /** What there should be; undefined when only a look can tell. */
  #expected: Counts | undefined

  constructor(family: Family) {
    this.#family = family
  }

  /** Everything was programmed anew: the table is right as it is now. Without one, as it is at the next look. */
  reset(table: string | undefined): void {
    this.#expected = table === undefined ? undefined : countLines(table, this.#family)
  }

  /** Follows what we do ourselves. */
  note(ops: readonly IpvsOp[]): void {
    for (const { op } of ops) {
      if (this.#expected === undefined) return
      const { servers, destinations } = this.#expected
      if (op === 'addServer') this.#expected = { servers: servers + 1, destinations }
      if (op === 'addDestination') this.#expected = { servers, destinations: destinations + 1 }
      if (op === 'deleteDestination') this.#expected = { servers, destinations: destinations - 1 }
      // How many destinations go with it, nobody counts.
      if (op === 'deleteServer') this.#expected = undefined
    }
  }

  /** Looks at the table. False: it is not as we left it. */
  check(table: string): boolean {
    const actual = countLines(table, this.#family)
    const expected = this.#expected ?? actual
    this.#expected = actual
    return actual.servers === expected.servers && actual.destinations === expected.destinations
  }
}

/** IPv6 addresses are in brackets. Virtual servers by firewall mark are not counted; their destinations are, which does no harm. */
function countLines(table: string, family: Family): Counts {
  const address = family === 4 ? String.raw`[0-9A-F]` : String.raw`\[`
  const servers = table.match(new RegExp(`^(TCP|UDP|SCTP) +${address}`, 'gm'))?.length ?? 0
  const destinations = table.match(new RegExp(`^ +-> ${address}[^ ]+ `, 'gm'))?.length ?? 0
  return { servers, destinations }
}
