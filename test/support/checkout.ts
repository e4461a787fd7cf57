// The folder of this checkout, from wherever the compiled test runs.

import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'

export const checkout = find(import.meta.dirname)

function find(folder: string): string {
  if (existsSync(join(folder, 'bin/kube-proxy'))) return folder
  const parent = dirname(folder)
  if (parent === folder) throw new Error(`Cannot find bin/kube-proxy above ${import.meta.dirname}`)
  return find(parent)
}
