// Programs of Debian that tests use and that a machine should not have installed, since their packages start a service.

import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'
import { fetchDebian, unpackDebian } from '../../scripts/release/debian.mjs'

/** The folder with a program: where PATH finds it, or else in the package, which is fetched and not installed. */
export function debianProgram(name: string, inPackage: string): string {
  const folders = (process.env['PATH'] ?? '').split(delimiter)
  const found = folders.find((folder) => isProgram(join(folder, name)))
  if (found !== undefined) return found
  const [fetched] = fetchDebian(process.arch === 'arm64' ? 'arm64' : 'amd64', [], [inPackage])
  return join(unpackDebian(fetched!), 'usr/bin')
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}
