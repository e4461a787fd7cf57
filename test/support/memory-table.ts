// A table of nftables, in memory: what the kernel would hold after what it was told.

import type { Family } from '../../src/lib/ip.ts'
import type { TableDriver } from '../../src/nftables/table-driver.ts'
import { applyOps } from '../../src/nftables/apply-ops.ts'
import { nftFamily } from '../../src/nftables/language.ts'
import type { Element, NftSet, Op, Table } from '../../src/nftables/types.ts'

export class MemoryTable implements TableDriver {
  readonly #family: Family
  readonly #name: string
  /** Undefined until something is applied. */
  table: Table | undefined

  constructor(family: Family, name: string) {
    this.#family = family
    this.#name = name
  }

  apply(ops: readonly Op[]): { bytes: number } {
    this.table = applyOps(nftFamily(this.#family), this.#name, this.table, ops)
    return { bytes: 0 }
  }

  read(): Table | undefined {
    return this.table
  }

  readElements(set: NftSet): readonly Element[] {
    return [...(this.table?.elements.get(set.name)?.values() ?? [])]
  }

  close(): void {}
}
