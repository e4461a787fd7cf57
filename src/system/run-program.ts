// Other programs, run to their end.

import type { ChildProcessWithoutNullStreams } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'

export interface ProgramResult {
  /** The exit code; 'missing' when there is no such program. 128 when a signal ended it. */
  readonly code: number | 'missing'
  readonly stdout: string
  readonly stderr: string
  /** 0 when it did not start. */
  readonly pid: number
}

export interface RunOptions {
  /** Made while the program reads it. */
  readonly input?: Iterable<string>
  /** Called as soon as the program has started. */
  readonly onStart?: (pid: number) => void
}

/** Where system programs are, whatever the environment says. */
const SYSTEM_PATHS = ['/usr/local/sbin', '/usr/sbin', '/sbin', '/usr/bin', '/bin']

/**
 * Runs while the event loop goes on. Resolves whatever the program says; rejects only when it cannot be run at all, as when the
 * machine has no room for another process, or this process for another open file.
 */
export function runProgram(name: string, args: readonly string[], options: RunOptions = {}): Promise<ProgramResult> {
  return new Promise((resolve, reject) => {
    expectSpareFiles(name)
    // Loaded here: a mode that runs no programs does without.
    const { spawn } = process.getBuiltinModule('node:child_process')
    const child = spawn(name, args, { env: programEnvironment(), stdio: ['pipe', 'pipe', 'pipe'] })
    const pid = child.pid ?? 0
    if (pid !== 0) options.onStart?.(pid)
    child.once('error', (error: NodeJS.ErrnoException) => (error.code === 'ENOENT' ? finish('missing') : reject(error)))
    const stdout: Buffer[] = []
    const stderr: Buffer[] = []
    const finish = (code: number | 'missing') =>
      resolve({ code, pid, stdout: Buffer.concat(stdout).toString(), stderr: Buffer.concat(stderr).toString() })
    // Without a file descriptor to spare, Node gives the child no streams; the error event is on its way.
    if ((child.stdin as unknown) === undefined || child.stdin === null) return
    child.stdout.on('data', (chunk: Buffer) => stdout.push(chunk))
    child.stderr.on('data', (chunk: Buffer) => stderr.push(chunk))
    child.once('close', (code) => finish(code ?? 128))
    feed(child, options.input ?? []).catch((error: unknown) => {
      child.kill()
      reject(error)
    })
  })
}

/** Three pipes, and the one over which libuv hears whether the program was found: two file descriptors each. */
const FILES_TO_START = 8

/**
 * Throws where a program cannot be started for want of file descriptors. Node would find out too late, when it has opened the
 * pipes, and never close those: each attempt would leave less for the next one.
 */
function expectSpareFiles(name: string): void {
  const files: number[] = []
  try {
    while (files.length < FILES_TO_START) files.push(openSync('/dev/null', 'r'))
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw Object.assign(new Error(`spawn ${name} ${code}`), { code })
  } finally {
    for (const file of files) closeSync(file)
  }
}

/** Writes what the program takes, until it takes no more. */
async function feed({ stdin }: ChildProcessWithoutNullStreams, input: Iterable<string>): Promise<void> {
  let isOpen = true
  const closed = new Promise<void>((resolve) => {
    const close = () => {
      isOpen = false
      resolve()
    }
    // It may end without reading all; its exit code says why.
    stdin.once('error', close)
    stdin.once('close', close)
  })
  for (const piece of input) {
    if (!isOpen) return
    if (stdin.write(piece)) continue
    await Promise.race([closed, new Promise<void>((resolve) => void stdin.once('drain', resolve))])
  }
  stdin.end()
}

/** Messages are parsed, so they have to be in English. */
function programEnvironment(): NodeJS.ProcessEnv {
  const path = [...(process.env['PATH'] ?? '').split(':'), ...SYSTEM_PATHS].filter((part) => part !== '')
  return { ...process.env, PATH: [...new Set(path)].join(':'), LC_ALL: 'C' }
}
