// The import graph of the sources, read from their text.

import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize, relative } from 'node:path'

export const root = join(import.meta.dirname, '../..')

export interface Import {
  /** Paths from the root of the project; a `node:` module or a package by its name. */
  readonly from: string
  readonly to: string
  /** Whether only types are taken, which leaves no trace in the program. */
  readonly typesOnly: boolean
  /** `import()`: loaded when it is needed. */
  readonly onDemand: boolean
}

const STATIC = /^(?:import|export)\s+(type\s+)?(?:([^'";]*?)\s+from\s+)?'([^']+)'/gm
const DYNAMIC = /\bimport\('([^']+)'\)/g

/** The imports of every file that is part of the program, or of the sandbox. */
export function importsOfProgram(): Import[] {
  return sources().flatMap((file) => {
    const text = readFileSync(join(root, file), 'utf8')
    const found: Import[] = []
    for (const [, type, names = '', to = ''] of text.matchAll(STATIC)) {
      const typesOnly = type !== undefined || (names.startsWith('{') && !/[{,]\s*(?!type\b)\w/.test(names))
      found.push({ from: file, to: resolve(file, to), typesOnly, onDemand: false })
    }
    for (const [, to = ''] of text.matchAll(DYNAMIC)) {
      found.push({ from: file, to: resolve(file, to), typesOnly: false, onDemand: true })
    }
    return found
  })
}

export function sources(): string[] {
  return ['src', 'packages/sandbox/src'].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.ts') && !file.endsWith('.test.ts'))
      .map((file) => `${folder}/${file}`),
  )
}

function resolve(file: string, to: string): string {
  return to.startsWith('.') ? relative(root, join(root, normalize(join(dirname(file), to)))) : to
}
