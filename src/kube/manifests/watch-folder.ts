// The files of a folder, or a single file, read again whenever one of them changes.

import { readFileSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { watchPath } from '../../lib/watch-path.ts'

export type FileChange =
  | { readonly file: string; readonly text: string }
  | { readonly file: string; readonly gone: true }
  | { readonly file: string; readonly error: Error }

const MANIFEST = /^[^.].*\.(ya?ml|json)$/

/** Yields what changed, beginning with everything. Throws when the folder cannot be read at first. */
export async function* watchFolder(path: string, signal: AbortSignal): AsyncGenerator<readonly FileChange[]> {
  const folder = new Folder(path)
  let isFirst = true
  for await (const _ of watchPath(path, { signal, quietMs: 50, pollMs: 5000, keepsProcess: true })) {
    const changes = isFirst ? folder.readFirst() : folder.readChanges()
    if (isFirst || changes.length > 0) yield changes
    isFirst = false
  }
}

/** A folder, or a single file, with the versions of its files that were read last. */
class Folder {
  readonly #path: string
  /** Time, size and inode; undefined when the file could not be read. */
  readonly #versions = new Map<string, string | undefined>()
  #isReadable = true

  constructor(path: string) {
    this.#path = path
  }

  readFirst(): FileChange[] {
    return this.#readFiles(this.#list())
  }

  readChanges(): FileChange[] {
    let files: string[]
    try {
      files = this.#list()
    } catch (error) {
      // While an operator replaces the whole folder, there is none for a moment. The objects stay.
      const isNews = this.#isReadable
      this.#isReadable = false
      return isNews ? [{ file: this.#path, error: error as Error }] : []
    }
    this.#isReadable = true
    return this.#readFiles(files)
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
      // A dangling link, or a file that was deleted since it was listed.
      if (this.#versions.has(file) && before === undefined) return []
      this.#versions.set(file, undefined)
      return [{ file, error: error as Error }]
    }
  }
}
