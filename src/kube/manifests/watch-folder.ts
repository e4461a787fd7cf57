// The files of a folder, read again whenever something in it changes: edits, additions, deletions, renames over a file, and
// the kubelet's way of swapping a link. Also takes a single file.

import { readFileSync, readdirSync, statSync, watch, type FSWatcher } from 'node:fs'
import { dirname, join } from 'node:path'
import { Waker } from '../../lib/waker.ts'

export interface WatchFolderOptions {
  readonly signal: AbortSignal
  /** Reads again when nothing has happened for this long: a write is often several events. */
  readonly quietMs?: number
  /** For file systems that report nothing, and for files that are links to elsewhere. */
  readonly pollMs?: number
}

/** A file whose content has changed, or that is gone, or that cannot be read. */
export type FileChange =
  | { readonly file: string; readonly text: string }
  | { readonly file: string; readonly gone: true }
  | { readonly file: string; readonly error: Error }

const MANIFEST = /^[^.].*\.(ya?ml|json)$/

/** Yields what changed, beginning with everything. Throws when the folder cannot be read at first. */
export async function* watchFolder(path: string, options: WatchFolderOptions): AsyncGenerator<readonly FileChange[]> {
  const { signal, quietMs = 50, pollMs = 5000 } = options
  const waker = new Waker({ keepsProcess: true })
  const folder = new Folder(path, () => waker.wake())
  try {
    yield folder.readFirst()
    while (!signal.aborted) {
      if (await waker.wait(pollMs, signal)) while (await waker.wait(quietMs, signal));
      const changes = folder.readChanges()
      if (changes.length > 0) yield changes
    }
  } finally {
    folder.close()
  }
}

/** A folder, or a single file, and what it held when it was read last. */
class Folder {
  readonly #path: string
  readonly #onEvent: () => void
  /** What a change of a file would change; undefined when it could not be read. */
  readonly #versions = new Map<string, string | undefined>()
  #isReadable = true
  #watcher: FSWatcher | undefined
  #inode = 0

  constructor(path: string, onEvent: () => void) {
    this.#path = path
    this.#onEvent = onEvent
  }

  readFirst(): FileChange[] {
    this.#renewWatch()
    return this.#readFiles(this.#list())
  }

  readChanges(): FileChange[] {
    // Before reading, so that nothing is missed.
    this.#renewWatch()
    let files: string[]
    try {
      files = this.#list()
    } catch (error) {
      // An operator may replace the whole folder, and for a moment there is none. What was loaded stays.
      const isNews = this.#isReadable
      this.#isReadable = false
      return isNews ? [{ file: this.#path, error: error as Error }] : []
    }
    this.#isReadable = true
    return this.#readFiles(files)
  }

  close(): void {
    this.#watcher?.close()
  }

  #list(): string[] {
    if (!statSync(this.#path).isDirectory()) return [this.#path]
    const names = readdirSync(this.#path).filter((name) => MANIFEST.test(name))
    return names.sort().map((name) => join(this.#path, name))
  }

  #readFiles(files: readonly string[]): FileChange[] {
    const changes = files.flatMap((file) => this.#readFile(file))
    for (const file of this.#versions.keys()) {
      if (files.includes(file)) continue
      this.#versions.delete(file)
      changes.push({ file, gone: true })
    }
    return changes
  }

  #readFile(file: string): FileChange[] {
    const before = this.#versions.get(file)
    try {
      const { mtimeNs, size, ino } = statSync(file, { bigint: true })
      const version = `${mtimeNs} ${size} ${ino}`
      if (before === version) return []
      const text = readFileSync(file, 'utf8')
      this.#versions.set(file, version)
      return [{ file, text }]
    } catch (error) {
      // A link to nothing, or gone since it was listed.
      if (this.#versions.has(file) && before === undefined) return []
      this.#versions.set(file, undefined)
      return [{ file, error: error as Error }]
    }
  }

  /** Watches the folder that the path leads to now, which may be another than before. */
  #renewWatch(): void {
    try {
      const folder = statSync(this.#path).isDirectory() ? this.#path : dirname(this.#path)
      const { ino } = statSync(folder)
      if (this.#inode === ino) return
      this.#watcher?.close()
      this.#watcher = watch(folder, this.#onEvent).on('error', this.#onEvent)
      this.#inode = ino
    } catch {
      // Reading it will tell what is wrong, and it is polled.
    }
  }
}
