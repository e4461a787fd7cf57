// A cgroup (version 2) of a test's own.

import { mkdirSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { readCgroupRoots } from '../../src/connect/cgroup.ts'

/** Where cgroups of version 2 are mounted first; undefined: nowhere. */
export function cgroupRoot(): string | undefined {
  return readCgroupRoots()[0]
}

/** Why a test that needs one cannot run here; undefined when it can. */
export function whyNoCgroup(): string | undefined {
  return cgroupRoot() === undefined ? 'no cgroup file system (version 2) is mounted' : undefined
}

export class Cgroup implements Disposable {
  readonly folder: string
  readonly #root: string

  constructor(name: string) {
    const root = cgroupRoot()
    if (root === undefined) throw new Error('Cannot make a cgroup: no cgroup file system (version 2) is mounted')
    this.#root = root
    this.folder = join(root, name)
    mkdirSync(this.folder, { recursive: true })
  }

  /** Sockets that this process opens from now on belong to it. */
  enter(): void {
    writeFileSync(join(this.folder, 'cgroup.procs'), String(process.pid))
  }

  /** What `work` opens belongs to it. */
  within<T>(work: () => T): T {
    this.enter()
    try {
      return work()
    } finally {
      this.leave()
    }
  }

  leave(): void {
    writeFileSync(join(this.#root, 'cgroup.procs'), String(process.pid))
  }

  /** When all its processes have ended, or left. */
  [Symbol.dispose](): void {
    rmdirSync(this.folder)
  }
}
