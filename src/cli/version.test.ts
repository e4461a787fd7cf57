import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { programVersion } from '../lib/program-version.ts'
import { formatVersion } from './version.ts'

test('programVersion is the version of package.json', () => {
  const file = readFileSync(new URL('../../package.json', import.meta.url), 'utf8')
  expect((JSON.parse(file) as { version: string }).version).toBe(programVersion)
})

test('formatVersion() prints the line that tools parse', () => {
  expect(formatVersion('true')).toMatch(/^Kubernetes v1\.37\.0\+ts\.\d+\.\d+\.\d+(\.g[0-9a-f]{12}(\.dirty)?)?\n$/)
  expect(formatVersion('raw')).toMatch(/^version\.Info\{Major:"1", Minor:"37", GitVersion:"v1\.37\.0\+ts/)
  expect(formatVersion('false')).toBeUndefined()
  expect(formatVersion('v1.37.1')).toBeUndefined()
})
