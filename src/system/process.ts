// What a process can say about itself to the kernel.

import { readFileSync } from 'node:fs'
import { mustCall, tryCall } from './libc.ts'

const PR_SET_PDEATHSIG = 1
const SIGKILL = 9
const CLONE_NEWUTS = 0x04000000
const CLONE_NEWNS = 0x00020000
const MS_BIND = 0x1000
const MS_REC = 0x4000
const MS_PRIVATE = 0x40000
const SIGPIPE = 13
const SIGXFSZ = 25
const F_SETFD = 2
const LOCK_EX = 2

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

/**
 * Gives this thread, and the programs that it starts from then on, mounts of their own: in each pair the file at `source` is
 * what they find at `target`.
 */
export function bindOwnFiles(files: readonly { readonly source: string; readonly target: string }[]): void {
  mustCall('create a mount namespace', 'unshare', CLONE_NEWNS)
  mustCall('keep mounts to ourselves', 'mount', null, '/', null, MS_REC | MS_PRIVATE, null)
  for (const { source, target } of files) {
    mustCall(`put ${source} at ${target}`, 'mount', source, target, null, MS_BIND, null)
  }
}

/** Becomes another program, with the environment and the open files that this one was started with. Returns only to throw. */
export function becomeProgram(program: string, args: readonly string[]): never {
  // Node ignores them, and a program that starts with them ignored never learns of a closed pipe.
  for (const signal of [SIGPIPE, SIGXFSZ]) tryCall('signal', signal, null)
  // Node marks all files that it was started with to be closed now.
  for (const fd of [0, 1, 2]) tryCall('fcntl', fd, F_SETFD, 0)
  mustCall(`run ${program}`, 'execvp', program, [program, ...args, null])
  throw new Error(`Cannot run ${program}: it neither started nor failed`)
}

/** Waits for the lock on an open file. It ends with the file descriptor. */
export function lockFile(fd: number): void {
  mustCall('lock a file', 'flock', fd, LOCK_EX)
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
