import type { Element, NftSet, Op, Table } from './types.ts'

/** Where a table is programmed: the kernel's (NftablesDriver), or one in memory. */
export interface TableDriver {
  apply(ops: readonly Op[]): { readonly bytes: number }
  read(): Table | undefined
  readElements(set: NftSet): readonly Element[]
  close(): void
}
