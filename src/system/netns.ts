// Network namespaces of this process: for tests, and for the nodes and pods of the sandbox.
//
// A namespace belongs to a thread. Called on the main thread, sockets opened and programs started from then on are in the
// new namespace; threads that already run, such as those that read files, stay behind.

import { mustCall } from './libc.ts'

const CLONE_NEWNET = 0x40000000
const O_RDONLY = 0
const O_CLOEXEC = 0o2000000

/** Moves this thread to a new network namespace, empty but for a loopback device that is down. */
export function unshareNetwork(): void {
  mustCall('create a network namespace', 'unshare', CLONE_NEWNET)
}

/** Moves this thread to the network namespace at a path such as /run/netns/node-1. */
export function enterNetwork(path: string): void {
  const fd = mustCall(`open network namespace ${path}`, 'open', path, O_RDONLY | O_CLOEXEC)
  try {
    enterNetworkFd(fd, path)
  } finally {
    mustCall(`close network namespace ${path}`, 'close', fd)
  }
}

/** Moves this thread to the network namespace behind a file descriptor. */
export function enterNetworkFd(fd: number, name: string): void {
  mustCall(`enter network namespace ${name}`, 'setns', fd, CLONE_NEWNET)
}

/** Calls back in the network namespace at a path: sockets that are opened meanwhile stay in it. */
export function inNetwork<T>(path: string, work: () => T): T {
  const own = mustCall('open the own network namespace', 'open', '/proc/thread-self/ns/net', O_RDONLY | O_CLOEXEC)
  try {
    enterNetwork(path)
    try {
      return work()
    } finally {
      enterNetworkFd(own, 'of this process')
    }
  } finally {
    mustCall('close the own network namespace', 'close', own)
  }
}
