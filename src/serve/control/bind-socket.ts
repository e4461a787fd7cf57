// Binding the control socket: private, and never another process's.

import { chmodSync, lstatSync, mkdirSync, unlinkSync, type Stats } from 'node:fs'
import { connect, type Server } from 'node:net'
import { dirname } from 'node:path'
import { listenAt } from '../http-server.ts'
import { CONTROL_FOLDER, listSockets, LONGEST_PATH } from './path.ts'

/** A socket that refuses and is younger may be of a process between bind and listen. */
const SETTLED_MS = 1000
/** Sockets of namespaces that are gone are removed after this; a sandbox that is killed leaves some. */
const OLD_MS = 60_000
const PROBE_MS = 1000

/**
 * Makes the server listen at the path, for this user alone. A socket that a killed process left is replaced; one behind which a
 * process listens is not. Rejects with what keeps it from that.
 */
export async function bindSocket(server: Server, path: string): Promise<void> {
  if (Buffer.byteLength(path) > LONGEST_PATH) {
    throw new Error(`the path is longer than ${LONGEST_PATH} bytes, which is all that a unix socket can have`)
  }
  prepareFolder(dirname(path))
  try {
    await listenAt(server, { path })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error
    await removeDead(path, SETTLED_MS)
    await listenAt(server, { path })
  }
  chmodSync(path, 0o600)
}

/** Removes the sockets of dead processes in other network namespaces. Never rejects. */
export async function sweepSockets(): Promise<void> {
  for (const path of listSockets(CONTROL_FOLDER)) await removeDead(path, OLD_MS).catch(() => {})
}

export function isAlive(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path)
    const answer = (alive: boolean) => {
      socket.destroy()
      resolve(alive)
    }
    socket.setTimeout(PROBE_MS, () => answer(true))
    socket.once('connect', () => answer(true))
    socket.once('error', ({ code }: NodeJS.ErrnoException) => answer(code !== 'ECONNREFUSED' && code !== 'ENOENT'))
  })
}

/** The folder is ours alone, or one that others cannot move things in. */
function prepareFolder(folder: string): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const { mode, uid } = lstatSync(folder)
  if (folder === CONTROL_FOLDER && uid === process.getuid?.()) {
    // A volume of a pod is open to all.
    if ((mode & 0o777) !== 0o700) chmodSync(folder, 0o700)
    return
  }
  const isSticky = (mode & 0o1000) !== 0
  if ((mode & 0o022) !== 0 && !isSticky)
    throw new Error(`others may write to the folder ${folder}: chmod go-w ${folder}`)
}

async function removeDead(path: string, settledMs: number): Promise<void> {
  const before = lstatSync(path)
  if (!before.isSocket()) throw new Error('there is a file of that name that is not a socket')
  if (await isAlive(path)) throw new Error('another process listens there')
  if (Date.now() - before.ctimeMs < settledMs) throw new Error('another process may be about to listen there')
  // Another starter may have replaced it meanwhile.
  if (isSameFile(before, lstatSync(path))) unlinkSync(path)
}

function isSameFile(a: Stats, b: Stats): boolean {
  return a.ino === b.ino && a.dev === b.dev && a.ctimeMs === b.ctimeMs
}
