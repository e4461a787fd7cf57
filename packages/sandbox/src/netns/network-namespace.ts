// Network namespaces that live as long as this process holds their file descriptors: however it ends, nothing is left.
//
// A thread is moved into a namespace for the moment in which it opens a socket, writes a sysctl or starts a program; what
// was opened stays there. Only for the main thread, and only for what happens before the function returns.

import { closeSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { enterNetworkFd, unshareNetwork } from '../../../../src/system/netns.ts'

const OWN_NETWORK = '/proc/thread-self/ns/net'

export class NetworkNamespace implements Disposable {
  readonly name: string
  readonly fd: number

  constructor(name: string, fd: number) {
    this.name = name
    this.fd = fd
  }

  /** Where others find it, as long as this process lives: `nsenter --net=PATH`. */
  get path(): string {
    return `/proc/${process.pid}/fd/${this.fd}`
  }

  /** Does something in the namespace. Only what happens before `work` returns happens there. */
  enter<T>(work: () => T): T {
    return comeBackAfter(() => {
      enterNetworkFd(this.fd, this.name)
      return work()
    })
  }

  /** Writes sysctls: `ipv4/ip_forward` to its value. Those that this kernel lacks, or keeps to the first namespace, are passed over. */
  setSysctls(values: Readonly<Record<string, number>>): void {
    this.enter(() => {
      for (const [key, value] of Object.entries(values)) {
        try {
          writeFileSync(`/proc/sys/net/${key}`, `${value}`)
        } catch (error) {
          const code = (error as NodeJS.ErrnoException).code ?? ''
          if (!['ENOENT', 'EACCES', 'EPERM', 'EROFS'].includes(code)) throw error
        }
      }
    })
  }

  readSysctl(key: string): string {
    return this.enter(() => readFileSync(`/proc/sys/net/${key}`, 'latin1').trim())
  }

  close(): void {
    closeSync(this.fd)
  }

  [Symbol.dispose](): void {
    this.close()
  }
}

/** Opens a new namespace, empty but for a loopback link that is down. */
export function openNetworkNamespace(name: string): NetworkNamespace {
  return comeBackAfter(() => {
    unshareNetwork()
    return ownNetworkNamespace(name)
  })
}

export function ownNetworkNamespace(name: string): NetworkNamespace {
  return new NetworkNamespace(name, openSync(OWN_NETWORK, 'r'))
}

/** Does something that moves this thread to another namespace, and moves it back to where it was. */
function comeBackAfter<T>(work: () => T): T {
  const before = openSync(OWN_NETWORK, 'r')
  try {
    return work()
  } finally {
    enterNetworkFd(before, 'it came from')
    closeSync(before)
  }
}
