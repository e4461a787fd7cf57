import { describe, expect, test } from 'vitest'
import { Tally } from './tally.mjs'

const entry = { project: /^e2e$/, test: /^the Go/, reason: /^needs GO$/, isExpected: true, why: '' }
const aTally = (lists = {}) => new Tally({ expectedSkips: [entry], quarantine: [], ...lists })
const skip = (name, reason) => ({ tests: [{ name, state: 'skipped', reason }], errors: [] })

describe('a skip', () => {
  test('that the list expects is counted, with its reason', () => {
    const tally = aTally()
    tally.addProject('e2e', skip('the Go rules', 'needs GO'), 0)
    expect(tally).toMatchObject({ skipped: 1, failures: [], skips: new Map([['needs GO', ['the Go rules']]]) })
    expect(tally.unusedSkips()).toEqual([])
  })

  test.for([
    ['of another test', 'e2e', 'something else', 'needs GO'],
    ['of another project', 'kernel', 'the Go rules', 'needs GO'],
    ['for another reason', 'e2e', 'the Go rules', 'it was cold'],
  ])('%s fails', ([, project, name, reason]) => {
    const tally = aTally()
    tally.addProject(project, skip(name, reason), 0)
    expect(tally.skipped).toBe(0)
    expect(tally.failures).toEqual([`${project}: ${name}: skipped, which is not expected here: ${reason}`])
  })

  test('that is expected elsewhere fails', () => {
    const tally = aTally({ expectedSkips: [{ ...entry, isExpected: false }] })
    tally.addProject('e2e', skip('the Go rules', 'needs GO'), 0)
    expect(tally.failures).toHaveLength(1)
  })

  test('that is expected and did not happen is told, where its project ran', () => {
    const tally = aTally()
    expect(tally.unusedSkips()).toEqual([])
    tally.addProject('e2e', { tests: [{ name: 'the Go rules', state: 'passed' }], errors: [] }, 0)
    expect(tally.unusedSkips()).toEqual([entry])
  })

  test('of a whole project counts its tests, where that is expected', () => {
    const tally = aTally({ expectedSkips: [{ ...entry, test: /^7 tests of the project/, reason: /root/ }] })
    tally.skipProject('e2e', { count: 7, isAll: true, reason: 'needs root' })
    expect(tally).toMatchObject({ skipped: 7, failures: [] })
    tally.skipProject('uml', { count: 3, isAll: false, reason: 'no kernel' })
    expect(tally.failures).toEqual([
      'uml: more than 3 tests of the project uml: skipped, which is not expected here: no kernel',
    ])
  })
})

describe('a project', () => {
  test('without tests fails', () => {
    const tally = aTally()
    tally.addProject('e2e', { tests: [], errors: [] }, 0)
    expect(tally.failures).toEqual(['e2e: there are no tests'])
  })

  test('that vitest failed for what is no test fails once', () => {
    const tally = aTally()
    tally.addProject('e2e', { tests: [{ name: 'a', state: 'passed' }], errors: [] }, 1)
    expect(tally.failures).toEqual(['e2e: vitest failed (1), for what is no test'])
  })

  test('that failed for its tests names them', () => {
    const tally = aTally()
    const tests = [
      { name: 'a', state: 'passed' },
      { name: 'b', state: 'failed' },
    ]
    tally.addProject('e2e', { tests, errors: ['outside'] }, 1)
    expect(tally).toMatchObject({ passed: 1, failures: ['e2e: outside', 'e2e: b'] })
  })
})

test('what is in quarantine is told and fails nothing, and only that', () => {
  const tally = aTally({ quarantine: [{ project: /^e2e$/, test: /^b$/, reason: 'unknown' }] })
  const failed = (name) => ({ tests: [{ name, state: 'failed' }], errors: [] })
  tally.addProject('e2e', failed('b'), 1)
  expect(tally).toMatchObject({ failures: [], quarantined: ['failed: e2e: b (unknown)'] })
  tally.addProject('kernel', failed('b'), 1)
  expect(tally.failures).toEqual(['kernel: b'])
})
