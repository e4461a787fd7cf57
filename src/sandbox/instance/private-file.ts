// Files with secrets: for root and for whoever called sudo, so that kubectl needs none.

import { chownSync, writeFileSync } from 'node:fs'

export function writePrivateFile(path: string, text: string): void {
  writeFileSync(path, text, { mode: 0o600 })
}

/** Makes the user that called sudo the owner of a file. */
export function giveToUser(path: string): void {
  const user = Number(process.env['SUDO_UID'])
  const group = Number(process.env['SUDO_GID'])
  if (process.getuid?.() !== 0 || !Number.isInteger(user) || !Number.isInteger(group)) return
  chownSync(path, user, group)
}
