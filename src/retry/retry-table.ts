// The retry table of one family, in the kernel.

import { KernelError } from '../lib/errors.ts'
import { type Bytes, type Family, asBytes } from '../lib/ip.ts'
import { NftablesDriver } from '../nftables/driver.ts'
import { icmpNumber, nftFamily } from '../nftables/language.ts'
import { makeTable } from '../nftables/transaction.ts'
import type { Element, Op } from '../nftables/types.ts'
import { RETRY_TABLE } from './names.ts'
import { planRetrySets, planRetryTable } from './plan-table.ts'

export interface RetryTableSettings {
  readonly family: Family
  readonly behindIpvs: boolean
}

/** Elements of one transaction. */
const CHUNK = 20_000

export class RetryTable {
  readonly #settings: RetryTableSettings
  readonly #driver: NftablesDriver
  readonly #alive: readonly Element[]

  constructor(settings: RetryTableSettings) {
    this.#settings = settings
    this.#driver = new NftablesDriver({ family: nftFamily(settings.family), table: RETRY_TABLE })
    this.#alive = ['\x06', icmpNumber(settings.family)].map((protocol) => ({ key: asBytes(protocol.padEnd(4, '\0')) }))
  }

  /** Creates the table, and replaces an existing one. */
  build(group: number, frontends: Iterable<Bytes>): void {
    const table = planRetryTable({ ...this.#settings, group })
    const ops = makeTable({
      comment: table.comment,
      sets: table.sets.values(),
      elements: [[this.#sets().alive, this.#alive]],
      chains: table.chains.values(),
    })
    this.#driver.apply(ops)
    this.change([], [...frontends])
  }

  /** Deletes frontends and adds others. */
  change(gone: readonly Bytes[], added: readonly Bytes[]): void {
    const set = this.#sets().frontends
    for (const [op, keys] of [['deleteElements', gone] as const, ['addElements', added] as const]) {
      for (let first = 0; first < keys.length; first += CHUNK) {
        const elements = keys.slice(first, first + CHUNK).map((key) => ({ key }))
        this.#driver.apply([{ op, set, elements }])
      }
    }
  }

  /** Renews the elements of `alive`. The kernel cannot extend a timeout, so it deletes and adds them in one transaction. */
  renew(): void {
    const set = this.#sets().alive
    const add: Op = { op: 'addElements', set, elements: this.#alive }
    try {
      this.#driver.apply([{ op: 'deleteElements', set, elements: this.#alive }, add])
    } catch (error) {
      // The elements have expired, or the table is gone. In that case adding fails, too.
      if (!(error instanceof KernelError) || error.errno !== 'ENOENT') throw error
      this.#driver.apply([add])
    }
  }

  /** Harmless when there is none. */
  remove(): void {
    if (this.#driver.exists()) this.#driver.apply([{ op: 'deleteTable' }])
  }

  close(): void {
    this.#driver.close()
  }

  #sets(): ReturnType<typeof planRetrySets> {
    return planRetrySets(this.#settings.family)
  }
}
