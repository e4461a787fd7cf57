import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { sourceFinder } from './log-sources.ts'

let dir: string
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'log-sources-'))
})
afterEach(() => rmSync(dir, { recursive: true }))

function finder(content?: string) {
  const file = join(dir, 'log-sources.json')
  if (content !== undefined) writeFileSync(file, content)
  return sourceFinder(pathToFileURL(file))
}

const at = (line: number) => ({ path: 'file:///opt/run.mjs', file: 'run.mjs', line })

test('sourceFinder() names the source and its line', () => {
  const find = finder('{"run.mjs":[["src/reconcile/healer.ts",7,30,9,41],["src/compose/run.ts",12,5]]}')
  expect(find(at(9))).toEqual({ path: 'src/reconcile/healer.ts', file: 'healer.ts', line: 41 })
  expect(find(at(12))).toEqual({ path: 'src/compose/run.ts', file: 'run.ts', line: 5 })
})

test.for([
  ['that it does not know', '{"run.mjs":[["src/reconcile/healer.ts",7,30]]}'],
  ['without the file', undefined],
  ['with a file that cannot be read', '{"run.mjs":7'],
])('sourceFinder() leaves a place as it is: one %s', ([, content]) => {
  expect(finder(content)(at(8))).toEqual(at(8))
})
