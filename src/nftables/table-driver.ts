import type { Element, NftSet, Op, Table } from './types.ts'

export type OnApplied = (ops: readonly Op[], bytes: number) => void

/** Where a table is programmed: the kernel's (NftablesDriver), or one in memory. */
export interface TableDriver {
  apply(ops: readonly Op[]): { readonly bytes: number }
  /** The same for many transactions, faster; `onApplied` is told what has taken effect. Without it, they are applied one by one. */
  applyEach?(transactions: Iterable<readonly Op[]>, onApplied: OnApplied): void
  read(): Table | undefined
  readElements(set: NftSet): readonly Element[]
  close(): void
}
