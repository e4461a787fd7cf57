// A second build of the program, of another version: the same files, made from another commit.

import { cpSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { checkout } from './checkout.ts'

/** How it is started. It lives in a folder of the caller's. */
export function otherVersion(folder: string): readonly string[] {
  const home = join(folder, 'other-version')
  mkdirSync(home)
  cpSync(join(checkout, 'package.json'), join(home, 'package.json'))
  symlinkSync(join(checkout, 'node_modules'), join(home, 'node_modules'))
  const leaveOut = join(checkout, 'dist', 'release')
  cpSync(join(checkout, 'dist'), join(home, 'dist'), { recursive: true, filter: (source) => source !== leaveOut })
  const origin = { commit: 'f'.repeat(40), treeState: 'clean', date: '2026-01-01T00:00:00Z' }
  writeFileSync(join(home, 'dist/src/cli/build.json'), JSON.stringify(origin))
  return [process.execPath, join(home, 'dist/src/cli/main.js')]
}
