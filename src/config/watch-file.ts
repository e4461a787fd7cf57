// Watches a configuration file, by whatever means it is replaced: written in place, renamed over, or swapped as the
// kubelet swaps ConfigMaps, where the file is a link to a link (`..data`) that is replaced in another way each time.
// kube-proxy sees only the first two.

import * as fs from 'node:fs'
import * as path from 'node:path'
import { Waker } from '../lib/waker.ts'

export interface WatchFileOptions {
  readonly signal: AbortSignal
  /** A write is often several events; the file is read this long after the first. */
  readonly debounceMs?: number
  /** For file systems that report nothing, and for changes that happen between two watches. */
  readonly pollMs?: number
}

/** What the file holds, or why it could not be read. */
export type FileContent = { readonly text: string } | { readonly error: Error }

/**
 * Yields the file's content each time it has become another than before, beginning with `known`. The newest content wins:
 * what was replaced before the reader asked is skipped.
 */
export async function* watchFile(file: string, known: string, options: WatchFileOptions): AsyncGenerator<FileContent> {
  const { signal, debounceMs = 100, pollMs = 10_000 } = options
  const waker = new Waker({ keepsProcess: false })
  const watches = new Watches(file, () => waker.wake())
  let last: string | undefined = known
  let lastError = ''
  try {
    while (!signal.aborted) {
      watches.renew()
      const content = await readContent(file)
      if ('text' in content) {
        if (content.text !== last) yield content
        last = content.text
        lastError = ''
      } else if (content.error.message !== lastError) {
        // Reported once. Whatever is there afterwards is news, even what was there before.
        yield content
        lastError = content.error.message
        last = undefined
      }
      if (signal.aborted) return
      await waker.wait(pollMs, signal)
      await waker.pause(debounceMs, signal)
    }
  } finally {
    watches.close()
  }
}

async function readContent(file: string): Promise<FileContent> {
  try {
    return { text: await fs.promises.readFile(file, 'utf8') }
  } catch (error) {
    return { error: error as Error }
  }
}

/** Watches on every folder in which a link on the way to the file, or the file itself, stands. */
class Watches {
  readonly #file: string
  readonly #byFolder = new Map<string, fs.FSWatcher>()
  readonly #onEvent: () => void

  constructor(file: string, onEvent: () => void) {
    this.#file = path.resolve(file)
    this.#onEvent = onEvent
  }

  /** Watches what the path leads through now. Must come before the file is read, so that nothing is missed. */
  renew(): void {
    const wanted = new Set(foldersOnTheWay(this.#file))
    for (const [folder, watcher] of this.#byFolder) {
      if (!wanted.has(folder)) this.#drop(folder, watcher)
    }
    for (const folder of wanted) if (!this.#byFolder.has(folder)) this.#add(folder)
  }

  close(): void {
    for (const [folder, watcher] of this.#byFolder) this.#drop(folder, watcher)
  }

  #add(folder: string): void {
    try {
      const watcher = fs.watch(folder, { persistent: false }, this.#onEvent)
      // A folder that is removed ends its watch; the next round looks again.
      watcher.on('error', () => this.#drop(folder, watcher))
      this.#byFolder.set(folder, watcher)
    } catch {
      // Polling still sees the change.
    }
  }

  #drop(folder: string, watcher: fs.FSWatcher): void {
    watcher.close()
    this.#byFolder.delete(folder)
  }
}

/** The folders whose entries decide what the path leads to. */
export function foldersOnTheWay(file: string): string[] {
  const folders: string[] = []
  let current = file
  // As many links as the kernel follows.
  for (let hops = 0; hops < 40; hops++) {
    const linked = firstLink(current)
    if (linked === undefined) return [...folders, path.dirname(current)]
    folders.push(path.dirname(linked.at))
    current = linked.target
  }
  return folders
}

/** The first link on a path, and the path with the link replaced by what it leads to. */
function firstLink(file: string): { at: string; target: string } | undefined {
  const parts = file.split(path.sep).filter(Boolean)
  for (let i = 1; i <= parts.length; i++) {
    const at = path.sep + parts.slice(0, i).join(path.sep)
    let target: string
    try {
      target = fs.readlinkSync(at)
    } catch {
      continue
    }
    return { at, target: path.resolve(path.dirname(at), target, ...parts.slice(i)) }
  }
  return undefined
}
