import type { Bytes } from '../lib/ip.ts'
import type { Steps } from '../lib/steps.ts'
import type { Element, NftSet, Op, OwnTable, Table } from './types.ts'

export type OnApplied = (ops: readonly Op[], bytes: number) => void

/** Where a table is programmed: the kernel's (NftablesDriver), or one in memory. */
export interface TableDriver {
  apply(ops: readonly Op[]): { readonly bytes: number }
  /** The same for many transactions, faster; `onApplied` is called with what has taken effect. Without it, they are applied one by one. */
  applyEach?(transactions: Iterable<readonly Op[]>, onApplied: OnApplied): void
  read(): Table | undefined
  readElements(set: NftSet): readonly Element[]
  /** The same in steps, as the kernel lists them: a set that packets change meanwhile may have an element twice, and lack another. */
  readingElements?(set: NftSet): Steps<readonly Element[]>
  /** Whether it knows the operation `destroyElements`. */
  readonly destroys?: boolean
  /** For tables that may be very long. Without it, they are read whole and at once. */
  readonly parts?: TableParts
  close(): void
}

/** A table that is read in steps and in parts. */
export interface TableParts {
  /** More elements than this are read faster by their keys. */
  readonly many: number
  read(perhaps?: PerhapsSets): Steps<OwnTable | undefined>
  /** Those elements of a set that have one of these keys. */
  readKeys(set: NftSet, keys: readonly Bytes[]): readonly Element[]
}

/** Sets that are read last, and only if what the rest of the table says is a reason to. */
export interface PerhapsSets {
  readonly sets: ReadonlySet<string>
  readonly areWanted: (rest: Table) => boolean
}
