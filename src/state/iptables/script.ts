// Operations as the text that iptables-restore reads.
//
// iptables-nft keeps a sorted list of the chains that a section names and walks it for each line: 1,000 services of ten
// endpoints in one section take eight seconds, and 2,500 more than a minute. So many changes are spread over sections of a
// few hundred chains (half a second, and less than two): first the chains of services, to which nothing jumps yet, then what
// jumps to them, then the deletion of what is no longer used. iptables-legacy replaces the whole table at the end of each
// section, so there it is one.

import type { DeleteChain, Op, WriteChain } from './ops.ts'
import type { TableName } from './types.ts'

export type Backend = 'nft' | 'legacy'

export interface Script {
  /** Empty when there is nothing to do. */
  readonly text: string
  readonly lines: number
  /** How many rules are written, by table. */
  readonly rules: ReadonlyMap<TableName, number>
  /** Whose a line is, from 1; undefined: everybody's. */
  ownerOf(line: number): string | undefined
}

/** The most chains in one section of iptables-nft. */
const SECTION_CHAINS = 250
/** Filter first: a service that loses its endpoints is refused before it is no longer translated. */
const TABLES: readonly TableName[] = ['mangle', 'filter', 'nat']

export function planScript(ops: readonly Op[], backend: Backend): Script {
  const sections = TABLES.flatMap((table) => {
    const ofTable = ops.filter((op) => op.table === table)
    return sectionsOf(ofTable, backend).map((section) => ({ table, ops: section }))
  }).filter((section) => section.ops.length > 0)
  let text = ''
  let lines = 0
  const rules = new Map<TableName, number>()
  for (const section of sections) {
    writeSection(section, (line) => {
      text += `${line}\n`
      lines++
    })
    const before = rules.get(section.table) ?? 0
    rules.set(
      section.table,
      section.ops.reduce((sum, op) => sum + rulesOf(op), before),
    )
  }
  return { text, lines, rules, ownerOf: (line) => ownerOfLine(sections, line) }
}

interface Section {
  readonly table: TableName
  readonly ops: readonly Op[]
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
  return { op: 'writeChain', table, chain, stage: 'service', rules: [], owner: undefined }
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
  return op.op === 'writeChain' && typeof op.owner === 'string' ? op.owner : op.chain
}

/** `emit` gets the lines in order, and whose they are. */
function writeSection({ table, ops }: Section, emit: (line: string, owner: string | undefined) => void): void {
  emit(`*${table}`, undefined)
  for (const op of ops) {
    if (op.op !== 'writeChain' && op.op !== 'deleteChain') continue
    emit(`:${op.chain} - [0:0]`, op.op === 'writeChain' && typeof op.owner === 'string' ? op.owner : undefined)
  }
  for (const op of ops) if (op.op === 'deleteRule') emit(`-D ${op.chain} ${op.rule}`, op.owner)
  for (const op of ops) {
    if (op.op === 'insertRule') emit(`-I ${op.chain} ${op.rule}`, op.owner)
    if (op.op === 'appendRule') emit(`-A ${op.chain} ${op.rule}`, op.owner)
    if (op.op !== 'writeChain') continue
    const { chain, owner } = op
    for (const [i, rule] of op.rules.entries()) {
      emit(`-A ${chain} ${rule}`, typeof owner === 'object' ? owner[i] : owner)
    }
  }
  for (const op of ops) if (op.op === 'deleteChain') emit(`-X ${op.chain}`, undefined)
  emit('COMMIT', undefined)
}

function rulesOf(op: Op): number {
  if (op.op === 'writeChain') return op.rules.length
  return op.op === 'insertRule' || op.op === 'appendRule' ? 1 : 0
}

/** Only asked for when a line was refused, so it is found by writing everything again. */
function ownerOfLine(sections: readonly Section[], wanted: number): string | undefined {
  let line = 0
  let found: string | undefined
  for (const section of sections) {
    writeSection(section, (_, owner) => {
      if (++line === wanted) found = owner
    })
  }
  return found
}
