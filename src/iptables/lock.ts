// The lock that iptables-legacy programs take before they change anything.
//
// We never take it ourselves: iptables-restore does. We only look whether another program holds it, to say so.

import { readFileSync, statSync } from 'node:fs'

const LOCK_FILE = '/run/xtables.lock'

/** The pid of the process that holds the lock; undefined when none does, as far as can be seen from here. */
export function lockHolder(): number | undefined {
  const file = process.env['XTABLES_LOCKFILE'] ?? LOCK_FILE
  try {
    return findHolder(readFileSync('/proc/locks', 'utf8'), statSync(file).ino)
  } catch {
    return undefined
  }
}

/** Reads /proc/locks: `1: FLOCK  ADVISORY  WRITE 1234 00:19:5 0 EOF`; those that wait have an arrow before FLOCK. */
export function findHolder(locks: string, inode: number): number | undefined {
  for (const line of locks.split('\n')) {
    const [, kind, , , pid = '', place = ''] = line.trim().split(/\s+/)
    if (kind === 'FLOCK' && place.endsWith(`:${inode}`)) return Number(pid)
  }
  return undefined
}

/** `calico-felix (pid 1234)` */
export function describeProcess(pid: number): string {
  return `${nameOfProcess(pid)} (pid ${pid})`
}

function nameOfProcess(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/comm`, 'utf8').trim()
  } catch {
    return 'a process'
  }
}
