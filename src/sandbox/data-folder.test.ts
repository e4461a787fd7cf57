import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { openDataFolder } from './data-folder.ts'

const folder = mkdtempSync(join(tmpdir(), 'data-folder-'))
afterAll(() => rmSync(folder, { recursive: true }))

test('openDataFolder() makes the folder, and remembers what its objects are made for', () => {
  const path = join(folder, 'a', 'b')
  const first = openDataFolder(path, [4])
  expect(first.index).toBeUndefined()
  first.remember(3)
  expect(() => openDataFolder(path, [4])).toThrow(`Cannot use the data in ${path}: another sandbox is using it`)
  first.close()
  const second = openDataFolder(path, [4])
  expect(second.index).toBe(3)
  second.close()
  expect(() => openDataFolder(path, [4, 6])).toThrow('start it without --dual-stack')
})

test.each([
  ['a file', import.meta.filename, 'it is not a folder'],
  ['a place that takes no folders', '/proc/nope/deeper', 'ENOENT'],
])('openDataFolder() says why it cannot use %s', (_, path, reason) => {
  expect(() => openDataFolder(path, [4])).toThrow(`Cannot keep data in ${path}: ${reason}`)
  expect(existsSync('/proc/nope')).toBe(false)
})
