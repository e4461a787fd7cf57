// The example in the README of a library: run as it stands there.

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, vi } from 'vitest'

const root = join(import.meta.dirname, '../..')

/** Runs the code block of `src/<folder>/README.md` and compares what it prints with the block after it. */
export async function checkReadmeExample(folder: string): Promise<void> {
  const readme = readFileSync(join(root, 'src', folder, 'README.md'), 'utf8')
  const [, code, printed] = /```ts\n(.*?)```\n\n```text\n(.*?)```/s.exec(readme) ?? []
  if (code === undefined) throw new Error(`Cannot run the example of src/${folder}/README.md: it has none`)
  const lines: string[] = []
  const log = vi.spyOn(console, 'log').mockImplementation((...values) => lines.push(values.join(' ').trimEnd()))
  try {
    await import(writeModule(folder, code))
  } finally {
    log.mockRestore()
  }
  expect(`${lines.join('\n')}\n`).toBe(printed)
}

/** A module cannot be imported from a text, for it imports others by their place. */
function writeModule(folder: string, code: string): string {
  const cache = join(root, '.cache/readme-examples')
  mkdirSync(cache, { recursive: true })
  const file = join(cache, `${folder}.ts`)
  writeFileSync(
    file,
    code.replaceAll(/ from '\.\.?\//g, (from) => ` from '../../src/${from.endsWith("'../") ? '' : `${folder}/`}`),
  )
  return file
}
