// Files with secrets: for root and for the user who called sudo, so that kubectl needs none.

import { chownSync, readFileSync } from 'node:fs'

export function giveToUser(path: string): void {
  const user = sudoUser()
  if (user !== undefined) chownSync(path, user.uid, user.gid)
}

/** The user who called sudo. Undefined: no other user did, or this process cannot act for another one. */
export function sudoUser(): { readonly uid: number; readonly gid: number } | undefined {
  const uid = Number(process.env['SUDO_UID'])
  const gid = Number(process.env['SUDO_GID'])
  if (process.getuid?.() !== 0 || !Number.isInteger(uid) || !Number.isInteger(gid) || uid === 0) return undefined
  return isInitialUserNamespace() ? { uid, gid } : undefined
}

/** In a user namespace, root stands for one ordinary user, and no other users exist. */
function isInitialUserNamespace(): boolean {
  return /^\s*0\s+0\s+4294967295\s*$/.test(readFileSync('/proc/self/uid_map', 'latin1'))
}
