// The process between the sandbox and a program in a pod: it goes into the pod and then becomes the program. Started by
// run-command.ts with what to do as its argument.

import { becomeProgram, dieWithParent } from '../../../../src/system/process.ts'
import { KernelError, messageOf } from '../../../../src/lib/errors.ts'
import { mustCall } from '../../../../src/system/libc.ts'
import { enterPlace } from './enter-place.ts'
import type { Place } from '../instance/control.ts'

export interface Entry {
  readonly place: Pick<Place, 'netns' | 'hostname' | 'files'>
  readonly command: readonly string[]
  readonly tty: boolean
  /** The user to become; undefined: stay who we are. */
  readonly user: { readonly uid: number; readonly gid: number } | undefined
  /** The process that starts this one. */
  readonly parent: number
}

const TIOCSCTTY = 0x540e
/** As of a shell: a program that is not there, and one that cannot be run. */
const exitCodes = { missing: 127, failure: 126 } as const

const entry = JSON.parse(process.argv[2]!) as Entry
const [program = '', ...args] = entry.command
try {
  enterPlace(entry.place)
  // The terminal on our standard input becomes the one that Ctrl-C comes from.
  if (entry.tty) mustCall('take the terminal', 'ioctl', 0, TIOCSCTTY, null)
  if (entry.user !== undefined) {
    process.setgroups?.([entry.user.gid])
    process.setgid?.(entry.user.gid)
    process.setuid?.(entry.user.uid)
  }
  process.chdir('/')
  dieWithParent()
  if (process.ppid !== entry.parent) process.exit(exitCodes.failure)
  becomeProgram(program, args)
} catch (error) {
  const isMissing = error instanceof KernelError && error.errno === 'ENOENT' && error.op === `run ${program}`
  const reason = isMissing ? `Cannot run ${program}: there is no such program` : messageOf(error)
  process.stderr.write(`kube-proxy: ${reason}\n`)
  process.exit(isMissing ? exitCodes.missing : exitCodes.failure)
}
