import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, expect, test } from 'vitest'
import { formatOrigin, readBuildOrigin } from './build-info.ts'

const folder = mkdtempSync(join(tmpdir(), 'build-info-'))
afterAll(() => rmSync(folder, { recursive: true }))

function read(text: string) {
  const file = join(folder, 'build.json')
  writeFileSync(file, text)
  return readBuildOrigin(pathToFileURL(file))
}

const commit = '0123456789abcdef0123456789abcdef01234567'

test('readBuildOrigin() reads what the build wrote', () => {
  const origin = { commit, treeState: 'dirty', date: '2026-11-15T12:00:00Z' }
  expect(read(JSON.stringify(origin))).toEqual(origin)
  expect(formatOrigin(read(JSON.stringify(origin)))).toBe('.g0123456789ab.dirty')
  expect(formatOrigin(read(JSON.stringify({ ...origin, treeState: 'clean' })))).toBe('.g0123456789ab')
})

test.each(['', '{', 'null', '{"commit":"HEAD"}', '{"commit":7}'])('readBuildOrigin() of %j is not known', (text) => {
  expect(read(text)).toEqual({ commit: '', treeState: '', date: '' })
  expect(formatOrigin(read(text))).toBe('')
})

test('readBuildOrigin() of no file is not known', () => {
  expect(readBuildOrigin(pathToFileURL(join(folder, 'missing.json'))).commit).toBe('')
})
