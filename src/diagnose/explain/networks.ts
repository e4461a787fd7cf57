// The network namespaces of this machine that can be found: by their names, as `ip netns` and container runtimes give them, and by
// the processes in them.

import { readdirSync, statSync } from 'node:fs'
import { KernelError } from '../../lib/errors.ts'
import { listAddresses } from '../../links/addresses.ts'
import { openBound } from '../../system/bound-socket.ts'
import { inNetwork } from '../../system/netns.ts'
import { readText } from '../read-text.ts'
import type { Departure } from './send.ts'

export interface Place {
  readonly where: string
  readonly enter: string | null
  /** The file of the network namespace; undefined: this one, or it has none that is known. */
  readonly path: string | undefined
}

/** Of a network namespace, by the number of its file. */
export function placeOf(namespace: number): Place {
  if (namespace === 0) return { where: 'on this machine', enter: null, path: undefined }
  if (namespace === ownNamespace()) return { where: 'on this node', enter: null, path: undefined }
  const name = nameOf(namespace)
  if (name !== undefined)
    return { where: `in the network namespace ${name}`, enter: `ip netns exec ${name}`, path: `${NAMES}/${name}` }
  const process = processIn(namespace)
  if (process === undefined)
    return { where: 'in another network namespace of this machine', enter: null, path: undefined }
  const { pid, name: program } = process
  const where = `in the network namespace of process ${pid} (${program})`
  return { where, enter: `nsenter -t ${pid} -n`, path: `/proc/${pid}/ns/net` }
}

/** The file of another network namespace with this address: of a pod on this machine. Undefined: there is none, or it may not be entered. */
export function networkWith(address: string): string | undefined {
  const seen = new Set([ownNamespace()])
  for (const path of paths()) {
    try {
      const { ino } = statSync(path)
      if (seen.has(ino)) continue
      seen.add(ino)
      if (inNetwork(path, () => listAddresses()).some((each) => each.address === address)) return path
    } catch (error) {
      // It has ended, or may not be looked at.
      if (!(error instanceof KernelError) && (error as NodeJS.ErrnoException).code === undefined) throw error
    }
  }
  return undefined
}

export function departFrom(path: string): Departure {
  return (transport, address, port) => inNetwork(path, () => openBound(transport, port, address))
}

function* paths(): Generator<string> {
  for (const name of namesIn(NAMES)) yield `${NAMES}/${name}`
  for (const entry of namesIn('/proc')) if (/^\d+$/.test(entry)) yield `/proc/${entry}/ns/net`
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}

function ownNamespace(): number {
  return statSync('/proc/self/ns/net').ino
}

/** As `ip netns` knows it. */
function nameOf(namespace: number): string | undefined {
  try {
    return readdirSync(NAMES).find((name) => statSync(`${NAMES}/${name}`).ino === namespace)
  } catch {
    return undefined
  }
}

const NAMES = '/run/netns'

function processIn(namespace: number): { readonly pid: number; readonly name: string } | undefined {
  for (const entry of readdirSync('/proc')) {
    if (!/^\d+$/.test(entry)) continue
    try {
      if (statSync(`/proc/${entry}/ns/net`).ino === namespace)
        return { pid: Number(entry), name: readText(`/proc/${entry}/comm`).trim() }
    } catch {
      // It has ended, or may not be looked at.
    }
  }
  return undefined
}
