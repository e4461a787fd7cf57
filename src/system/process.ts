// What a process can say about itself to the kernel.

import { readFileSync } from 'node:fs'
import { mustCall, tryCall } from './libc.ts'

const PR_SET_PDEATHSIG = 1
const SIGKILL = 9
const CLONE_NEWUTS = 0x04000000
const LOCK_EX = 2
const LOCK_NB = 4

/** Makes the kernel end this process when the one that started it ends, however that happens. */
export function dieWithParent(): void {
  mustCall('ask to end with the parent process', 'prctl', PR_SET_PDEATHSIG, SIGKILL)
}

/** Gives this thread, and the programs that it starts from then on, a host name of their own. */
export function setOwnHostname(name: string): void {
  mustCall('create a UTS namespace', 'unshare', CLONE_NEWUTS)
  const bytes = Buffer.from(name)
  mustCall(`set the host name ${name}`, 'sethostname', bytes, bytes.length)
}

/** Waits for the lock on an open file. It ends with the file descriptor. */
export function lockFile(fd: number): void {
  mustCall('lock a file', 'flock', fd, LOCK_EX)
}

/** Takes the lock on an open file, unless somebody else has it. */
export function tryLockFile(fd: number): boolean {
  return tryCall('flock', fd, LOCK_EX | LOCK_NB) === 0
}

/**
 * When a process started, in ticks since the machine did: with the number it names a process for all times. Undefined when
 * there is no such process, or only what is left of it until its parent takes notice.
 */
export function processStart(pid: number): number | undefined {
  let stat: string
  try {
    stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
  } catch {
    return undefined
  }
  // The name, in parentheses, may hold anything.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return fields[0] === 'Z' || fields[0] === 'X' ? undefined : Number(fields[19])
}
