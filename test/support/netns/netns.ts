// The sandbox's network namespaces, with what tests do in them besides: run programs, and stay there.

import { spawn, spawnSync } from 'node:child_process'
import { rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { enterNetworkFd } from '../../../src/system/netns.ts'
import {
  NetworkNamespace,
  openNetworkNamespace,
  ownNetworkNamespace,
} from '../../../packages/sandbox/src/netns/network-namespace.ts'
import type { ChildProcess, SpawnOptions } from 'node:child_process'
import type { Cgroup } from '../cgroup.ts'

/**
 * iptables-legacy locks for the whole machine. What is programmed here has nothing to do with the namespaces of other tests,
 * which would be waited for, and longer than the 5 s that a proxy waits: each process of tests has a lock of its own.
 */
const lockFile = join(tmpdir(), `xtables-${process.pid}.lock`)
if (process.env['XTABLES_LOCKFILE'] === undefined) {
  process.env['XTABLES_LOCKFILE'] = lockFile
  process.once('exit', () => rmSync(lockFile, { force: true }))
}

export class Netns extends NetworkNamespace {
  /** The cgroup of the clients there; undefined: that of this process. */
  clients: Cgroup | undefined

  /** Runs commands of iproute2, one per line, in one process. */
  ip(commands: readonly string[]): void {
    this.run('ip', ['-batch', '-'], commands.join('\n'))
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
}

/** Opens a new namespace, empty but for a loopback link that is down. The thread stays where it is. */
export function openNetns(name: string): Netns {
  return new Netns(name, openNetworkNamespace(name).fd)
}

/**
 * Lets the thread live in the namespace until the returned value is disposed of: whatever opens sockets later, or starts
 * programs, does so there.
 */
export function restIn(netns: NetworkNamespace): Disposable {
  const before = ownNetworkNamespace('before')
  enterNetworkFd(netns.fd, netns.name)
  return {
    [Symbol.dispose]() {
      enterNetworkFd(before.fd, before.name)
      before.close()
    },
  }
}
