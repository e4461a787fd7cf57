// What a sandbox with --data keeps beside its API objects: what they were made for.

import { closeSync, existsSync, mkdirSync, openSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { tryLockFile } from '../system/process.ts'
import { messageOf } from '../lib/errors.ts'
import type { Family } from '../lib/ip.ts'

export interface DataFolder {
  readonly path: string
  /** The number whose addresses its objects have; undefined in a new folder. */
  readonly index: number | undefined
  /** Remembers what the objects are made for. */
  remember(index: number): void
  close(): void
}

interface Memory {
  readonly index: number
  readonly families: readonly Family[]
}

/** Opens the folder for this process alone. Throws when another sandbox uses it, or when it holds another kind of cluster. */
export function openDataFolder(path: string, families: readonly Family[]): DataFolder {
  const file = join(path, 'sandbox.json')
  const lock = openLock(path)
  try {
    if (!tryLockFile(lock)) throw new Error(`Cannot use the data in ${path}: another sandbox is using it`)
    const memory = readMemory(file)
    if (memory !== undefined && memory.families.join() !== families.join()) {
      const remedy = memory.families.length > 1 ? 'start it with --dual-stack' : 'start it without --dual-stack'
      throw new Error(`Cannot use the data in ${path}: it is of a cluster with other IP families; ${remedy}`)
    }
    return {
      path,
      index: memory?.index,
      remember: (index) => writeFileSync(file, JSON.stringify({ index, families } satisfies Memory)),
      close: () => closeSync(lock),
    }
  } catch (error) {
    closeSync(lock)
    throw error
  }
}

/** Makes the folder where there is none. */
function openLock(path: string): number {
  try {
    makeFolder(path)
    return openSync(join(path, 'lock'), 'a')
  } catch (error) {
    const reason = existsSync(path) && !statSync(path).isDirectory() ? 'it is not a folder' : messageOf(error)
    throw new Error(`Cannot keep data in ${path}: ${reason}`, { cause: error })
  }
}

/** With its parents. Node's own way never ends where a folder is there and takes no others, as in /proc. */
function makeFolder(path: string): void {
  if (existsSync(path)) return
  makeFolder(dirname(path))
  mkdirSync(path)
}

function readMemory(file: string): Memory | undefined {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Memory
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw new Error(`Cannot read ${file}: ${(error as Error).message}`, { cause: error })
  }
}
