// Writes on disk: a snapshot of everything at some revision, and a log of what came after it. Both are lines of
// `checksum JSON`, so that a line cut short by a crash is seen for what it is. See docs/adr on why this is no database.

import { crc32 } from 'node:zlib'
import { mkdir, open, readFile, rename } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { messageOf } from '../../../lib/errors.ts'
import type { FileHandle } from 'node:fs/promises'
import type { Journal, JournalRecord, Store } from './store.ts'

const snapshotName = 'snapshot.jsonl'
const logName = 'log.jsonl'
/** A log of this size is folded into a new snapshot. */
const foldBytes = 64 * 1024 * 1024

interface Snapshot {
  readonly revision: number
  readonly records: Map<string, JournalRecord>
}

/** Fills an empty store from a folder, and keeps what is written to it there from now on. */
export async function openFileJournal(folder: string, store: Store): Promise<FileJournal> {
  await mkdir(folder, { recursive: true })
  const { revision, records } = await readFolder(folder)
  store.restore(revision, records.values())
  const journal = new FileJournal(folder, store)
  await journal.fold()
  store.keepIn(journal)
  return journal
}

async function readFolder(folder: string): Promise<Snapshot> {
  const records = new Map<string, JournalRecord>()
  let revision = 0
  for (const name of [snapshotName, logName]) {
    for (const record of parseLines(await readIfThere(join(folder, name)), join(folder, name))) {
      // The log may still hold what the snapshot has already: the crash came between the two.
      if (record.revision > revision || name === snapshotName) records.set(`${record.collection} ${record.key}`, record)
      revision = Math.max(revision, record.revision)
    }
  }
  return { revision, records }
}

async function readIfThere(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return ''
    throw error
  }
}

/** The records of a file, up to the first line that is not whole. In a snapshot there is no such line. */
export function parseLines(text: string, path: string): JournalRecord[] {
  const records: JournalRecord[] = []
  const lines = text.split('\n')
  for (const line of lines.slice(0, -1)) {
    const record = parseLine(line)
    if (record === undefined) {
      if (basename(path) === snapshotName) {
        throw new Error(
          `Cannot read ${path}: line ${records.length + 1} is damaged. Remove the data folder to start anew`,
        )
      }
      break
    }
    records.push(record)
  }
  return records
}

function parseLine(line: string): JournalRecord | undefined {
  const json = line.slice(9)
  if (line[8] !== ' ' || checksum(json) !== line.slice(0, 8)) return undefined
  return JSON.parse(json) as JournalRecord
}

export function formatLine(record: JournalRecord): string {
  const json = JSON.stringify(record)
  return `${checksum(json)} ${json}\n`
}

function checksum(text: string): string {
  return crc32(text).toString(16).padStart(8, '0')
}

export class FileJournal implements Journal {
  readonly #folder: string
  readonly #store: Store
  #log: FileHandle | undefined
  #logBytes = 0
  #pending: string[] = []
  #writing: Promise<void> | undefined
  /** The first thing that went wrong. Nothing is written after it, and whoever waits is told. */
  #failure: Error | undefined

  constructor(folder: string, store: Store) {
    this.#folder = folder
    this.#store = store
  }

  append(record: JournalRecord): void {
    this.#pending.push(formatLine(record))
    this.#writing ??= this.#write()
  }

  /** Writes that arrive while a write is on its way to the disk share the next one. */
  async flushed(): Promise<void> {
    while (this.#writing !== undefined) await this.#writing
    if (this.#failure !== undefined) throw this.#failure
  }

  async close(): Promise<void> {
    while (this.#writing !== undefined) await this.#writing
    await this.#log?.close()
    this.#log = undefined
  }

  /** Makes everything there is the snapshot, and starts an empty log. */
  async fold(): Promise<void> {
    const path = join(this.#folder, snapshotName)
    const lines: string[] = []
    for (const record of this.#store.records()) lines.push(formatLine(record))
    // The revision of the last write may belong to a deletion, of which a snapshot keeps nothing else.
    lines.push(formatLine({ revision: this.#store.revision, collection: '', key: '', object: null }))
    await writeSafely(`${path}.new`, lines.join(''))
    await rename(`${path}.new`, path)
    await syncFolder(this.#folder)
    await this.#log?.close()
    this.#log = await open(join(this.#folder, logName), 'w', 0o600)
    this.#logBytes = 0
  }

  async #write(): Promise<void> {
    // Everything that is written in this turn goes together.
    await Promise.resolve()
    try {
      while (this.#pending.length > 0 && this.#failure === undefined) {
        const text = this.#pending.join('')
        this.#pending = []
        await this.#log?.appendFile(text)
        await this.#log?.datasync()
        this.#logBytes += text.length
        if (this.#logBytes > foldBytes) await this.#foldNow()
      }
    } catch (error) {
      this.#failure = new Error(`Cannot keep the cluster's state in ${this.#folder}: ${messageOf(error)}`, {
        cause: error,
      })
    }
    this.#writing = undefined
  }

  /** What waits to be written is in the store, and so in the snapshot. */
  async #foldNow(): Promise<void> {
    this.#pending = []
    await this.fold()
  }
}

async function writeSafely(path: string, text: string): Promise<void> {
  const file = await open(path, 'w', 0o600)
  try {
    await file.writeFile(text)
    await file.sync()
  } finally {
    await file.close()
  }
}

/** A new name in a folder is safe only when the folder is. */
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}
