// Programs in pods: for `kubectl exec`, and for probes that run a command.

import { spawn } from 'node:child_process'
import { chownSync, closeSync, readSync } from 'node:fs'
import { Socket } from 'node:net'
import { ReadStream } from 'node:tty'
import { fileURLToPath } from 'node:url'
import { PassThrough, Writable, type Readable } from 'node:stream'
import { mustCall } from '../../../../src/system/libc.ts'
import type { Place } from '../instance/control.ts'
import { sudoUser } from '../instance/private-file.ts'
import type { TerminalSize } from '../streams/command-channels.ts'
import type { Entry } from './entry.ts'
import { exitCodeOf, openTerminal, resizeTerminal } from './terminal.ts'

export interface RunningCommand {
  readonly stdin: Writable | undefined
  readonly stdout: Readable
  /** Undefined with a terminal, which has one output. */
  readonly stderr: Readable | undefined
  readonly exited: Promise<number>
  resize(size: TerminalSize): void
  /** Ends the program and what it started, unless that left its session. */
  kill(): void
}

export interface CommandOptions {
  readonly command: readonly string[]
  readonly stdin: boolean
  readonly tty: boolean
}

const ENTRY = fileURLToPath(new URL('entry.js', import.meta.url))
const O_CLOEXEC = 0o2000000
const F_DUPFD_CLOEXEC = 1030
const TERMINAL_BUFFER = 65_536
/** Of the sandbox's own environment: what programs need to be found and to speak the user's language. */
const inherited = ['PATH', 'LANG', 'LC_ALL', 'TZ']

export function runCommand(place: Place, { command, stdin, tty }: CommandOptions): RunningCommand {
  // The user who called sudo has the kubeconfig: what kubectl runs has that user's rights and no more.
  const user = sudoUser()
  const streams = tty ? openTerminalStreams(user) : openPipes(stdin)
  const { netns, hostname, files } = place
  const entry: Entry = { place: { netns, hostname, files }, command, tty, user, parent: process.pid }
  const child = spawn(process.execPath, [...process.execArgv, ENTRY, JSON.stringify(entry)], {
    stdio: streams.child,
    env: { ...environment(user !== undefined, tty), ...place.env },
    // A session of its own: it may have a terminal, and can be ended with all that it started.
    detached: true,
  })
  for (const fd of new Set(streams.child)) if (typeof fd === 'number') closeSync(fd)
  const exited = new Promise<number>((resolve) => {
    child.on('error', () => resolve(exitCodeOf(126, null)))
    child.on('exit', (code, signal) => resolve(exitCodeOf(code, signal)))
  })
  const kill = (): void => {
    try {
      if (child.pid !== undefined && child.exitCode === null && child.signalCode === null) {
        process.kill(-child.pid, 'SIGKILL')
      }
    } catch {
      // It has ended in the meantime.
    }
  }
  return { ...streams.own, exited, kill }
}

function environment(isOther: boolean, tty: boolean): Record<string, string> {
  const kept = Object.entries(process.env).filter(([name]) => inherited.includes(name))
  const home = isOther ? '/' : (process.env['HOME'] ?? '/')
  return { ...(Object.fromEntries(kept) as Record<string, string>), HOME: home, ...(tty ? { TERM: 'xterm' } : {}) }
}

interface Streams {
  readonly child: readonly (number | 'ignore')[] & [number | 'ignore', number, number]
  readonly own: Pick<RunningCommand, 'stdin' | 'stdout' | 'stderr' | 'resize'>
}

/** Pipes, as a shell makes them: what Node would make are sockets, and those cannot be opened as /dev/stdout. */
function openPipes(stdin: boolean): Streams {
  const pipe = (): readonly [number, number] => {
    const ends = new Int32Array(2)
    mustCall('open a pipe', 'pipe2', ends, O_CLOEXEC)
    return [ends[0]!, ends[1]!]
  }
  const [stdoutFrom, stdoutTo] = pipe()
  const [stderrFrom, stderrTo] = pipe()
  const input = stdin ? pipe() : undefined
  const reader = (fd: number): Socket => quiet(new Socket({ fd, readable: true, writable: false }))
  const writer = (fd: number): Socket => quiet(new Socket({ fd, readable: false, writable: true }))
  return {
    child: [input?.[0] ?? 'ignore', stdoutTo, stderrTo],
    own: {
      stdin: input === undefined ? undefined : writer(input[1]),
      stdout: reader(stdoutFrom),
      stderr: reader(stderrFrom),
      resize: () => {},
    },
  }
}

function openTerminalStreams(user: Entry['user']): Streams {
  const { master, slave, path } = openTerminal()
  if (user !== undefined) chownSync(path, user.uid, user.gid)
  const stream = new ReadStream(master)
  const output = new PassThrough()
  // Node takes the moment in which the last program closes its side for the end, whatever is left to read: we read it.
  const spare = mustCall('keep a terminal open', 'fcntl', master, F_DUPFD_CLOEXEC, 0)
  stream.on('error', () => {})
  stream.on('close', () => {
    for (const bytes of [...waiting(stream), ...readAll(spare)]) output.write(bytes)
    closeSync(spare)
    output.end()
  })
  stream.on('data', (bytes) => {
    if (!output.write(bytes)) stream.pause()
  })
  output.on('drain', () => stream.resume())
  output.on('close', () => stream.destroy())
  return {
    child: [slave, slave, slave],
    own: {
      // A terminal has no end of its input: a program that waits for one gets Ctrl-D.
      stdin: new Writable({ write: (bytes: Buffer, _, done) => void stream.write(bytes, () => done()) }),
      stdout: output,
      stderr: undefined,
      resize: (size) => {
        if (!stream.destroyed) resizeTerminal(master, size)
      },
    },
  }
}

/** What a stream has read and not yet handed on. */
function* waiting(stream: Readable): Iterable<Buffer> {
  for (let bytes = stream.read() as Buffer | null; bytes !== null; bytes = stream.read() as Buffer | null) yield bytes
}

/** What is left in a terminal: until there is nothing more, or nothing yet. */
function* readAll(fd: number): Iterable<Buffer> {
  try {
    for (;;) {
      const bytes = Buffer.alloc(TERMINAL_BUFFER)
      const length = readSync(fd, bytes)
      if (length === 0) return
      yield bytes.subarray(0, length)
    }
  } catch {
    // EIO or EAGAIN: that was all.
  }
}

/** A program that reads no more, or is gone, is no error of ours. */
function quiet(socket: Socket): Socket {
  return socket.on('error', () => {})
}
