// Watches a file or a folder, by whatever means it is replaced: written in place, renamed over, or swapped as the kubelet swaps
// ConfigMaps, where the path leads through a link (`..data`) that is replaced each time.

import * as fs from 'node:fs'
import * as path from 'node:path'
import { Waker } from './waker.ts'

export interface WatchPathOptions {
  readonly signal: AbortSignal
  /** One write often causes several events: the path is read when no event has come for this long. */
  readonly quietMs: number
  /** For file systems without events, and for changes between two watches. */
  readonly pollMs: number
  /** Whether the watch keeps the process alive. */
  readonly keepsProcess: boolean
}

/** A path that changes all the time is still read after this many quiet times. */
const MOST_PAUSES = 10

/** Yields at once, and each time the path should be read again. */
export async function* watchPath(file: string, options: WatchPathOptions): AsyncGenerator<void> {
  const { signal, quietMs, pollMs, keepsProcess } = options
  const waker = new Waker({ keepsProcess })
  const watches = new Watches(path.resolve(file), () => waker.wake(), keepsProcess)
  try {
    while (!signal.aborted) {
      // Before the path is read, so that no change is missed.
      watches.renew()
      yield
      if (!(await waker.wait(pollMs, signal))) continue
      for (let i = 0; i < MOST_PAUSES && (await waker.wait(quietMs, signal)); i++);
    }
  } finally {
    watches.close()
  }
}

/** Watches every folder that contains the path or a link on the way to it; and the path itself, if it is a folder. */
class Watches {
  readonly #path: string
  readonly #onEvent: () => void
  readonly #persistent: boolean
  /** By device and inode: a folder may be replaced by another of its name. */
  readonly #byInode = new Map<string, fs.FSWatcher>()

  constructor(watched: string, onEvent: () => void, persistent: boolean) {
    this.#path = watched
    this.#onEvent = onEvent
    this.#persistent = persistent
  }

  /** Watches what the path leads through now. */
  renew(): void {
    const folders = new Map([...foldersOnTheWay(this.#path), this.#path].flatMap(inodeOfFolder))
    for (const inode of this.#byInode.keys()) if (!folders.has(inode)) this.#drop(inode)
    for (const [inode, folder] of folders) if (!this.#byInode.has(inode)) this.#add(inode, folder)
  }

  close(): void {
    for (const inode of this.#byInode.keys()) this.#drop(inode)
  }

  #add(inode: string, folder: string): void {
    try {
      const watcher = fs.watch(folder, { persistent: this.#persistent }, this.#onEvent)
      // The watch of a removed folder ends; the next round looks again.
      watcher.on('error', () => this.#drop(inode))
      this.#byInode.set(inode, watcher)
    } catch {
      // Polling still sees the change.
    }
  }

  #drop(inode: string): void {
    this.#byInode.get(inode)?.close()
    this.#byInode.delete(inode)
  }
}

function inodeOfFolder(folder: string): [string, string][] {
  const stats = fs.statSync(folder, { throwIfNoEntry: false })
  return stats?.isDirectory() === true ? [[`${stats.dev}:${stats.ino}`, folder]] : []
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
