// Network namespaces without names: each lives as long as this process holds its file descriptor, so none is left behind
// however the process ends, and two runs never meet.
//
// A thread is moved into a namespace for the moment in which it opens a socket, writes a sysctl or starts a program; what
// was opened stays there. Only for the main thread of a process (vitest's pool `forks`).

import { spawn, spawnSync } from 'node:child_process'
import { closeSync, openSync, writeFileSync } from 'node:fs'
import { enterNetwork, unshareNetwork } from './native.ts'
import type { ChildProcess, SpawnOptions } from 'node:child_process'

/** The namespace that the thread is in when nobody has entered another. */
let resting: number | undefined

export class Netns {
  readonly name: string
  readonly #fd: number

  constructor(name: string, fd: number) {
    this.name = name
    this.#fd = fd
  }

  /** Does something in the namespace. Only what happens before `work` returns happens there. */
  enter<T>(work: () => T): T {
    const back = restingFd()
    enterNetwork(this.#fd)
    try {
      return work()
    } finally {
      enterNetwork(back)
    }
  }

  /** A path that other programs can open: `nsenter --net=PATH`, `ip link ... netns PATH`. */
  get path(): string {
    return `/proc/${process.pid}/fd/${this.#fd}`
  }

  /** Runs commands of iproute2, one per line, in one process. */
  ip(commands: readonly string[]): void {
    this.run('ip', ['-batch', '-'], commands.join('\n'))
  }

  /** Writes sysctls: `ipv4/ip_forward` to its value. Those that this kernel lacks, or keeps to the first namespace, are passed over. */
  sysctl(values: Readonly<Record<string, number>>): void {
    this.enter(() => {
      for (const [key, value] of Object.entries(values)) {
        try {
          writeFileSync(`/proc/sys/net/${key}`, `${value}`)
        } catch (error) {
          if (!['ENOENT', 'EACCES', 'EPERM'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error
        }
      }
    })
  }

  /** Runs a program in the namespace to its end and gives what it printed. */
  run(command: string, args: readonly string[], input = ''): string {
    const result = this.enter(() => spawnSync(command, args, { input, encoding: 'utf8', maxBuffer: 1 << 28 }))
    if (result.error !== undefined) throw result.error
    if (result.status !== 0) {
      throw new Error(`Cannot run ${command} ${args.join(' ')} in ${this.name}: ${result.stderr || result.stdout}`)
    }
    return result.stdout
  }

  /** Starts a program in the namespace. It is killed by the kernel when this process ends, however that happens. */
  spawn(command: readonly string[], options: SpawnOptions = {}): ChildProcess {
    return this.enter(() => spawn('setpriv', ['--pdeathsig', 'KILL', '--', ...command], options))
  }

  close(): void {
    closeSync(this.#fd)
  }

  [Symbol.dispose](): void {
    this.close()
  }
}

/** Opens a new namespace, with loopback up. The thread stays where it is. */
export function openNetns(name: string): Netns {
  const back = restingFd()
  unshareNetwork()
  const netns = new Netns(name, openSync('/proc/thread-self/ns/net', 'r'))
  enterNetwork(back)
  return netns
}

/**
 * Lets the thread live in the namespace until the returned value is disposed of: whatever opens sockets later, or starts
 * programs, does so there.
 */
export function restIn(netns: Netns): Disposable {
  const before = restingFd()
  const fd = netns.enter(() => openSync('/proc/thread-self/ns/net', 'r'))
  enterNetwork(fd)
  resting = fd
  return {
    [Symbol.dispose]() {
      enterNetwork(before)
      resting = before
      closeSync(fd)
    },
  }
}

function restingFd(): number {
  resting ??= openSync('/proc/thread-self/ns/net', 'r')
  return resting
}
