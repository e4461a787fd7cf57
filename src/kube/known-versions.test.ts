import { expect, test } from 'vitest'
import { isOlderVersion, KnownVersions } from './known-versions.ts'

test('KnownVersions.set() says whether the version is new', () => {
  const known = new KnownVersions()
  expect([known.set('a', '1'), known.set('a', '1'), known.set('a', '2')]).toEqual([true, false, true])
})

test.each([
  ['1', '01'],
  ['9007199254740993', '9007199254740992'],
  ['', '0'],
  ['1e3', '1000'],
  ['a', 'NaN'],
])('KnownVersions.set() tells %j from %j', (before, after) => {
  const known = new KnownVersions()
  expect([known.set('a', before), known.set('a', before), known.set('a', after)]).toEqual([true, false, true])
})

test('KnownVersions.forgetAll() returns what was known', () => {
  const known = new KnownVersions()
  known.set('a', '1')
  known.set('b', '1')
  expect(known.forgetAll()).toEqual(['a', 'b'])
  expect(known.set('a', '1')).toBe(true)
})

test('KnownVersions.finishList() forgets and returns what was not listed', () => {
  const known = new KnownVersions()
  known.set('a', '1')
  known.set('b', '1')
  known.startList()
  expect(known.list('b', '1')).toBe(false)
  expect(known.list('c', '2')).toBe(true)
  expect(known.finishList()).toEqual(['a'])
  expect(known.delete('a')).toBe(false)
})

test('KnownVersions.finishList() counts only the last list, when one before was given up', () => {
  const known = new KnownVersions()
  known.startList()
  known.list('a', '1')
  known.startList()
  known.list('b', '1')
  expect(known.finishList()).toEqual(['a'])
})

test('KnownVersions.doubt() makes every version new, and forgets no object', () => {
  const known = new KnownVersions()
  known.set('a', '1')
  known.set('b', '1')
  known.doubt()
  known.startList()
  expect(known.list('a', '1')).toBe(true)
  expect(known.finishList()).toEqual(['b'])
})

test('isOlderVersion() compares numbers of any length, and nothing else', () => {
  expect(isOlderVersion('9', '10')).toBe(true)
  expect(isOlderVersion('10', '9')).toBe(false)
  expect(isOlderVersion('10', '10')).toBe(false)
  expect(isOlderVersion('99999999999999999998', '99999999999999999999')).toBe(true)
  expect(isOlderVersion('a', 'b')).toBe(false)
  expect(isOlderVersion('1', '')).toBe(false)
})
