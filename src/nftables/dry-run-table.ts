// A table that is read and never written: what would be done to it is kept instead.

import { applyOps } from './apply-ops.ts'
import { formatTable } from './format.ts'
import { formatOps } from './format-ops.ts'
import type { Steps } from '../lib/steps.ts'
import type { PerhapsSets, TableDriver, TableParts } from './table-driver.ts'
import { sameRules } from './same.ts'
import type { Element, NftFamily, NftSet, Op, OwnTable, Rule, Table } from './types.ts'

export interface DryRunTableOptions {
  readonly family: NftFamily
  readonly name: string
  /** The kernel's side; absent: a kernel that has no such table. */
  readonly kernel?: Pick<TableDriver, 'read' | 'readElements' | 'parts'> | undefined
}

export class DryRunTable implements TableDriver {
  readonly parts?: TableParts
  readonly destroys = true
  readonly #options: DryRunTableOptions
  readonly #ops: Op[] = []
  #sets: Table['sets'] | undefined
  #chains: Table['chains'] | undefined

  constructor(options: DryRunTableOptions) {
    this.#options = options
    const parts = options.kernel?.parts
    if (parts !== undefined) this.parts = { ...parts, read: (perhaps) => this.#reading(parts, perhaps) }
  }

  apply(ops: readonly Op[]): { readonly bytes: number } {
    // One by one: a call with a hundred thousand arguments is more than the stack holds.
    for (const op of ops) this.#ops.push(op)
    return { bytes: 0 }
  }

  read(): Table | undefined {
    const table = this.#options.kernel?.read()
    this.#sets = table?.sets
    this.#chains = table?.chains
    return table
  }

  *#reading(parts: TableParts, perhaps: PerhapsSets | undefined): Steps<OwnTable | undefined> {
    const table = yield* parts.read(perhaps)
    this.#sets = table?.sets
    this.#chains = table?.chains
    return table
  }

  readElements(set: NftSet): readonly Element[] {
    // One that would only be made now has none.
    return this.#sets?.has(set.name) === true ? (this.#options.kernel?.readElements(set) ?? []) : []
  }

  close(): void {}

  /** Commands, one per line, for `nft -f`; and those that only remove sets that nothing is in, with the rules that look into them. */
  commands(): { readonly needed: string[]; readonly leftovers: string[] } {
    const leftovers = this.#leftovers()
    const format = (ops: readonly Op[]) => [...formatOps(this.#options.family, this.#options.name, ops)]
    return {
      needed: format(this.#ops.filter((op) => !leftovers.has(op))),
      leftovers: format(this.#ops.filter((op) => leftovers.has(op))),
    }
  }

  #leftovers(): ReadonlySet<Op> {
    const empty = new Set(
      this.#ops.flatMap((op) => {
        const set = op.op === 'deleteSet' ? this.#sets?.get(op.name) : undefined
        return set !== undefined && this.readElements(set).length === 0 ? [set.name] : []
      }),
    )
    const looksThere = ({ expressions }: Rule) =>
      expressions.some((each) => each.kind === 'lookup' && empty.has(each.set))
    // A chain that is rewritten, and differs only in such rules.
    const rewritten = [...(this.#chains?.values() ?? [])].filter(({ name, rules }) => {
      const added = this.#ops.flatMap((op) => (op.op === 'addRule' && op.chain === name ? [op.rule] : []))
      const isFlushed = this.#ops.some((op) => op.op === 'flushChain' && op.name === name)
      return (
        isFlushed &&
        sameRules(
          rules.filter((rule) => !looksThere(rule)),
          added,
        )
      )
    })
    const chains = new Set(rewritten.map(({ name }) => name))
    return new Set(
      this.#ops.filter(
        (op) =>
          (op.op === 'deleteSet' && empty.has(op.name)) ||
          (op.op === 'flushChain' && chains.has(op.name)) ||
          (op.op === 'addRule' && chains.has(op.chain)),
      ),
    )
  }

  /** The whole table, for `nft -f`: it takes the place of one that is there. Only where there was no table before. */
  text(): string {
    const { family, name } = this.#options
    const table = applyOps(family, name, undefined, this.#ops)
    if (table === undefined) return ''
    return `add table ${family} ${name}\ndelete table ${family} ${name}\n${formatTable(table)}`
  }
}
