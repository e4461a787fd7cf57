// Names of namespaces for `ip netns`: `ip netns exec sandbox-node-1 ...`. Links, not mounts: a link to a file of a
// process that is gone is no more than a name, and the namespace behind it has ended with the process.

import { existsSync, lstatSync, mkdirSync, readdirSync, readlinkSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import type { NetworkNamespace } from '../netns/network-namespace.ts'

const FOLDER = '/run/netns'

/** Names a namespace; without the right to do so, or with another of that name, it stays without one. */
export function addNetnsName(sandbox: string, netns: NetworkNamespace): void {
  try {
    mkdirSync(FOLDER, { recursive: true })
    const path = join(FOLDER, `${sandbox}-${netns.name}`)
    removeIfLeft(path)
    symlinkSync(netns.path, path)
  } catch {
    // Only a convenience.
  }
}

export function removeNetnsName(sandbox: string, netns: NetworkNamespace): void {
  removeIfOurs(join(FOLDER, `${sandbox}-${netns.name}`), process.pid)
}

/** Removes all names that lead to files of the sandbox's process. */
export function removeNetnsNames({ name, pid }: { readonly name: string; readonly pid: number }): void {
  let entries: string[]
  try {
    entries = readdirSync(FOLDER)
  } catch {
    return
  }
  for (const entry of entries) if (entry.startsWith(`${name}-`)) removeIfOurs(join(FOLDER, entry), pid)
}

/** A sandbox that was killed, and whose folder is gone, leaves names that no other sandbox would free. */
function removeIfLeft(path: string): void {
  try {
    const isLink = lstatSync(path).isSymbolicLink()
    if (isLink && !existsSync(path)) rmSync(path)
  } catch {
    // The name is free.
  }
}

function removeIfOurs(path: string, pid: number): void {
  try {
    if (readlinkSync(path).startsWith(`/proc/${pid}/fd/`)) rmSync(path)
  } catch {
    // It is no link of ours, or gone.
  }
}
