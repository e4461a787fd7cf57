// Operations as the text that iptables-restore reads.
//
// iptables-nft keeps a sorted list of the chains that a section names and walks it for each line: 1,000 services of ten
// endpoints in one section take eight seconds, and 2,500 more than a minute. So many changes are spread over sections of a
// few hundred chains (half a second, and less than two): first the chains of services, to which nothing jumps yet, then what
// jumps to them, then the deletion of what is no longer used. iptables-legacy replaces the whole table at the end of each
// section, so there it is one.

import type { ChangeRule, DeleteChain, Op, WriteChain } from './ops.ts'
import type { TableName } from './types.ts'

export type Backend = 'nft' | 'legacy'

export interface Script {
  /** Empty when there is nothing to do. */
  readonly text: string
  /** Whose the n-th line is, from 0; undefined: everybody's. */
  readonly owners: readonly (string | undefined)[]
  /** How many rules are written, by table. */
  readonly rules: ReadonlyMap<TableName, number>
}

/** The most chains in one section of iptables-nft. */
const SECTION_CHAINS = 250
/** Filter first: a service that loses its endpoints is refused before it is no longer translated. */
const TABLES: readonly TableName[] = ['mangle', 'filter', 'nat']

export function planScript(ops: readonly Op[], backend: Backend): Script {
  const writer = new ScriptWriter()
  for (const table of TABLES) {
    const ofTable = ops.filter((op) => op.table === table)
    for (const section of sectionsOf(ofTable, backend)) writer.section(table, section)
  }
  return writer
}

function sectionsOf(ops: readonly Op[], backend: Backend): (readonly Op[])[] {
  const chains = ops.filter((op) => op.op === 'writeChain' || op.op === 'deleteChain')
  if (backend === 'legacy' || chains.length <= SECTION_CHAINS) return [ops]
  const written = ops.filter((op) => op.op === 'writeChain')
  const deleted = chunks(ops.filter((op) => op.op === 'deleteChain'))
  const changed = ops.filter((op) => op.op !== 'writeChain' && op.op !== 'deleteChain')
  return [
    written.filter((op) => op.stage === 'helper'),
    ...chunks(written.filter((op) => op.stage === 'service')),
    [...written.filter((op) => op.stage === 'entry'), ...changed],
    // They may jump to each other, so all of them are emptied before any is deleted.
    ...deleted.map((chunk) => chunk.map(emptied)),
    ...deleted,
  ]
}

function emptied({ table, chain }: DeleteChain): WriteChain {
  return { op: 'writeChain', table, chain, stage: 'service', rules: [] }
}

/** Chains of one owner jump to each other, so they stay together. */
function chunks<T extends WriteChain | DeleteChain>(ops: readonly T[]): T[][] {
  const chunks: T[][] = []
  let chunk: T[] = []
  for (const op of ops) {
    if (chunk.length >= SECTION_CHAINS && ownerOf(op) !== ownerOf(chunk.at(-1)!)) {
      chunks.push(chunk)
      chunk = []
    }
    chunk.push(op)
  }
  return [...chunks, chunk]
}

/** Chains of nobody count as those of one owner each. */
function ownerOf(op: WriteChain | DeleteChain): string {
  return (op.op === 'writeChain' ? op.rules[0]?.owner : undefined) ?? op.chain
}

class ScriptWriter implements Script {
  readonly #lines: string[] = []
  readonly owners: (string | undefined)[] = []
  readonly rules = new Map<TableName, number>()

  get text(): string {
    return this.#lines.length === 0 ? '' : `${this.#lines.join('\n')}\n`
  }

  section(table: TableName, ops: readonly Op[]): void {
    if (ops.length === 0) return
    this.#line(`*${table}`)
    for (const op of ops) {
      if (op.op === 'writeChain' || op.op === 'deleteChain') this.#line(`:${op.chain} - [0:0]`, ownerOfLine(op))
    }
    for (const op of ops) if (op.op === 'deleteRule') this.#ruleLine('-D', op)
    for (const op of ops) {
      if (op.op === 'insertRule') this.#ruleLine('-I', op)
      if (op.op === 'appendRule') this.#ruleLine('-A', op)
      if (op.op !== 'writeChain') continue
      const { chain } = op
      for (const { rule, owner } of op.rules) this.#ruleLine('-A', { table, chain, rule, owner })
    }
    for (const op of ops) if (op.op === 'deleteChain') this.#line(`-X ${op.chain}`)
    this.#line('COMMIT')
  }

  #ruleLine(command: '-A' | '-D' | '-I', { table, chain, rule, owner }: Omit<ChangeRule, 'op'>): void {
    this.#line(`${command} ${chain} ${rule}`, owner)
    if (command !== '-D') this.rules.set(table, (this.rules.get(table) ?? 0) + 1)
  }

  #line(line: string, owner?: string): void {
    this.#lines.push(line)
    this.owners.push(owner)
  }
}

function ownerOfLine(op: WriteChain | DeleteChain): string | undefined {
  return op.op === 'writeChain' && op.stage === 'service' ? op.rules[0]?.owner : undefined
}
