// Operations as the text that iptables-restore reads, piece by piece: it works on the first while the last is being made.
//
// iptables-nft keeps a sorted list of the chains that a section names and walks it for each line: 1,000 services of ten
// endpoints in one section take eight seconds, and 2,500 more than a minute. So many changes are spread over sections of a
// few hundred chains (half a second, and less than two): first the chains of services, to which nothing jumps yet, then what
// jumps to them, then the deletion of what is no longer used. iptables-legacy replaces the whole table at the end of each
// section, so there it is one.

import type { DeleteChain, Op, WriteChain } from './ops.ts'
import type { TableName } from './types.ts'

export type Backend = 'nft' | 'legacy'

/** Up to so many chains are changed all at once. */
const FEW_CHAINS = 250
/** Filter first: a service that loses its endpoints is refused before it is no longer translated. */
const TABLES: readonly TableName[] = ['mangle', 'filter', 'nat']

export class Script {
  readonly #ops: Iterable<Op>
  readonly #backend: Backend
  /** Those that were made so far. */
  readonly #pieces: Piece[] = []
  /** How much of the text was made so far. */
  lines = 0
  bytes = 0
  readonly rules = new Map<TableName, number>()

  /** Chains of services that jump to each other have to follow each other, after the helpers to which they jump. */
  constructor(ops: Iterable<Op>, backend: Backend) {
    this.#ops = ops
    this.#backend = backend
  }

  /** The text, made while it is taken. Nothing when there is nothing to do. Can be taken once. */
  *text(): Generator<string> {
    for (const piece of planPieces(this.#ops, this.#backend)) {
      this.#pieces.push(piece)
      let text = ''
      writePiece(piece, (line) => {
        text += `${line}\n`
        this.lines++
      })
      this.bytes += text.length
      const before = this.rules.get(piece.table) ?? 0
      this.rules.set(
        piece.table,
        piece.ops.reduce((sum, op) => sum + rulesOf(op), before),
      )
      yield text
    }
  }

  /** Whose a line is, from 1; undefined: all services'. Only asked for when it was refused, so all is written again. */
  ownerOf(wanted: number): string | undefined {
    let line = 0
    let found: string | undefined
    for (const piece of this.#pieces) {
      writePiece(piece, (_, owner) => {
        if (++line === wanted) found = owner
      })
    }
    return found
  }
}

/** A section, or a part of one. */
interface Piece {
  readonly table: TableName
  readonly ops: readonly Op[]
  readonly begins: boolean
  readonly ends: boolean
}

function* planPieces(ops: Iterable<Op>, backend: Backend): Generator<Piece> {
  const iterator = ops[Symbol.iterator]()
  const first: Op[] = []
  let chains = 0
  for (let next = iterator.next(); next.done !== true; next = iterator.next()) {
    first.push(next.value)
    if (isAboutChain(next.value) && ++chains > FEW_CHAINS) {
      yield* planMany(
        (function* () {
          yield* first
          yield* { [Symbol.iterator]: () => iterator }
        })(),
        backend,
      )
      return
    }
  }
  yield* wholeSections(first, TABLES)
}

function* planMany(ops: Iterable<Op>, backend: Backend): Generator<Piece> {
  const apart = backend === 'nft'
  const later: Op[] = []
  let chunk: WriteChain[] = []
  let begins = true
  for (const op of ops) {
    if (op.op !== 'writeChain' || op.table !== 'nat' || op.stage === 'entry') {
      later.push(op)
      continue
    }
    if (chunk.length >= FEW_CHAINS && ownerOf(op) !== ownerOf(chunk.at(-1)!)) {
      yield { table: 'nat', ops: chunk, begins, ends: apart }
      begins = apart
      chunk = []
    }
    chunk.push(op)
  }
  if (!apart) {
    // The nat table ends last, so it is the only one that is half made meanwhile; packets do not pass it before.
    yield { table: 'nat', ops: [...chunk, ...later.filter((op) => op.table === 'nat')], begins, ends: true }
    yield* wholeSections(later, ['mangle', 'filter'])
    return
  }
  if (chunk.length > 0) yield { table: 'nat', ops: chunk, begins, ends: true }
  const isDeletion = (op: Op): op is DeleteChain => op.op === 'deleteChain' && op.table === 'nat'
  const deletions = chunksOf(later.filter(isDeletion))
  yield* wholeSections(
    later.filter((op) => !isDeletion(op)),
    TABLES,
  )
  // They may jump to each other, so all of them are emptied before any is deleted.
  for (const some of deletions) yield { table: 'nat', ops: some.map(emptied), begins: true, ends: true }
  for (const some of deletions) yield { table: 'nat', ops: some, begins: true, ends: true }
}

function* wholeSections(ops: readonly Op[], tables: readonly TableName[]): Generator<Piece> {
  for (const table of tables) {
    const ofTable = ops.filter((op) => op.table === table)
    if (ofTable.length > 0) yield { table, ops: ofTable, begins: true, ends: true }
  }
}

function chunksOf<T>(list: readonly T[]): T[][] {
  const chunks: T[][] = []
  for (let start = 0; start < list.length; start += FEW_CHAINS) chunks.push(list.slice(start, start + FEW_CHAINS))
  return chunks
}

function emptied({ table, chain }: DeleteChain): WriteChain {
  return { op: 'writeChain', table, chain, stage: 'service', rules: [], owner: undefined }
}

/** Chains without an owner count as those of one owner each. */
function ownerOf({ owner, chain }: WriteChain): string {
  return typeof owner === 'string' ? owner : chain
}

function isAboutChain(op: Op): op is WriteChain | DeleteChain {
  return op.op === 'writeChain' || op.op === 'deleteChain'
}

/** `emit` gets the lines in order, and whose they are. */
function writePiece(piece: Piece, emit: (line: string, owner: string | undefined) => void): void {
  const { table, ops, begins, ends } = piece
  if (begins) emit(`*${table}`, undefined)
  for (const op of ops) {
    if (!isAboutChain(op)) continue
    emit(`:${op.chain} - [0:0]`, op.op === 'writeChain' && typeof op.owner === 'string' ? op.owner : undefined)
  }
  for (const op of ops) if (op.op === 'deleteRule') emit(`-D ${op.chain} ${op.rule}`, op.owner)
  for (const op of ops) {
    if (op.op === 'insertRule') emit(`-I ${op.chain} ${op.rule}`, op.owner)
    if (op.op === 'appendRule') emit(`-A ${op.chain} ${op.rule}`, op.owner)
    if (op.op !== 'writeChain') continue
    const { chain, owner, rules } = op
    for (let i = 0; i < rules.length; i++) {
      emit(`-A ${chain} ${rules[i]}`, typeof owner === 'object' ? owner[i] : owner)
    }
  }
  for (const op of ops) if (op.op === 'deleteChain') emit(`-X ${op.chain}`, undefined)
  if (ends) emit('COMMIT', undefined)
}

function rulesOf(op: Op): number {
  if (op.op === 'writeChain') return op.rules.length
  return op.op === 'insertRule' || op.op === 'appendRule' ? 1 : 0
}
