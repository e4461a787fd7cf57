// Settings of the kernel, under /proc/sys.

import { readFileSync, writeFileSync } from 'node:fs'
import { KernelError } from '../lib/errors.ts'

const ROOT = '/proc/sys/'

/** Why a setting could not be read or written, apart from what the kernel says about the value. */
export type SysctlProblem = 'missing' | 'read-only'

/** The setting does not exist, or this process may not change it. Other errors are KernelErrors of another kind. */
export class SysctlError extends KernelError {
  readonly setting: string
  readonly problem: SysctlProblem

  constructor(op: string, { setting, problem, errno }: { setting: string; problem: SysctlProblem; errno: string }) {
    super(op, errno, PROBLEMS[problem])
    this.setting = setting
    this.problem = problem
  }
}

const PROBLEMS: Readonly<Record<SysctlProblem, string>> = {
  missing: 'there is no such setting in this kernel; a module may have to be loaded',
  'read-only': 'the setting is read-only here; a container has to be privileged to change it',
}

const PROBLEM_OF: Readonly<Record<string, SysctlProblem>> = {
  ENOENT: 'missing',
  ENOTDIR: 'missing',
  EACCES: 'read-only',
  EPERM: 'read-only',
  EROFS: 'read-only',
}

/** The value of a setting such as `net/ipv4/ip_forward`, without the newline. */
export function readSysctl(setting: string): string {
  const op = `read kernel setting ${setting}`
  return attempt(op, setting, () => readFileSync(ROOT + setting, 'utf8').trimEnd())
}

export function writeSysctl(setting: string, value: string | number): void {
  const op = `set kernel setting ${setting} to ${value}`
  // Opened for writing only, and never created.
  attempt(op, setting, () => writeFileSync(ROOT + setting, `${value}\n`, { flag: 'r+' }))
}

function attempt<T>(op: string, setting: string, work: () => T): T {
  try {
    return work()
  } catch (error) {
    const errno = (error as NodeJS.ErrnoException).code
    if (errno === undefined) throw error
    const problem = PROBLEM_OF[errno]
    if (problem === undefined) throw new KernelError(op, errno)
    throw new SysctlError(op, { setting, problem, errno })
  }
}
