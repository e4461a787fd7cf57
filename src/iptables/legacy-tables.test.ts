import { expect, test } from 'vitest'
import { hasLegacyTables } from './legacy-tables.ts'

const failing = (code: string) => () => {
  throw Object.assign(new Error(code), { code })
}

test.each([
  ['one of IPv4', (file: string) => (file.includes('ip6') ? '' : 'nat\n'), true],
  ['one of IPv6', (file: string) => (file.includes('ip6') ? 'filter\n' : ''), true],
  ['none', () => '', false],
  ['a kernel without them', failing('ENOENT'), false],
  ['a file that cannot be read', failing('EACCES'), true],
])('%s', (_, read, expected) => {
  expect(hasLegacyTables(read)).toBe(expected)
})
