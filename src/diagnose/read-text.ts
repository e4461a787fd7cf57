// Files of the kernel.

import { readFileSync } from 'node:fs'

/** Empty when it cannot be read. */
export function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

/** Undefined when the file cannot be read, or holds something else. */
export function readNumber(path: string): number | undefined {
  const text = readText(path).trim()
  return /^-?\d+$/.test(text) ? Number(text) : undefined
}
