import { describe, expect, test } from 'vitest'
import { TestTotals } from './test-totals.mjs'

const entry = { project: /^e2e$/, test: /^the Go/, reason: /^needs GO$/, isExpected: true, why: '' }
const someTotals = (lists = {}) => new TestTotals({ expectedSkips: [entry], quarantine: [], ...lists })
const skip = (name, reason) => ({ tests: [{ name, state: 'skipped', reason }], errors: [] })

describe('a skip', () => {
  test('that the list expects is counted, with its reason', () => {
    const totals = someTotals()
    totals.addProject('e2e', skip('the Go rules', 'needs GO'), 0)
    expect(totals).toMatchObject({ skipped: 1, failures: [], skips: new Map([['needs GO', ['the Go rules']]]) })
    expect(totals.unusedSkips()).toEqual([])
  })

  test.for([
    ['of another test', 'e2e', 'something else', 'needs GO'],
    ['of another project', 'kernel', 'the Go rules', 'needs GO'],
    ['for another reason', 'e2e', 'the Go rules', 'it was cold'],
  ])('%s fails', ([, project, name, reason]) => {
    const totals = someTotals()
    totals.addProject(project, skip(name, reason), 0)
    expect(totals.skipped).toBe(0)
    expect(totals.failures).toEqual([`${project}: ${name}: skipped, which is not expected here: ${reason}`])
  })

  test('that is expected elsewhere fails', () => {
    const totals = someTotals({ expectedSkips: [{ ...entry, isExpected: false }] })
    totals.addProject('e2e', skip('the Go rules', 'needs GO'), 0)
    expect(totals.failures).toHaveLength(1)
  })

  test('that is expected and did not happen is told, where its project ran', () => {
    const totals = someTotals()
    expect(totals.unusedSkips()).toEqual([])
    totals.addProject('e2e', { tests: [{ name: 'the Go rules', state: 'passed' }], errors: [] }, 0)
    expect(totals.unusedSkips()).toEqual([entry])
  })

  test('of a whole project counts its tests, where that is expected', () => {
    const totals = someTotals({ expectedSkips: [{ ...entry, test: /^7 tests of the project/, reason: /root/ }] })
    totals.skipProject('e2e', { count: 7, isAll: true, reason: 'needs root' })
    expect(totals).toMatchObject({ skipped: 7, failures: [] })
    totals.skipProject('uml', { count: 3, isAll: false, reason: 'no kernel' })
    expect(totals.failures).toEqual([
      'uml: more than 3 tests of the project uml: skipped, which is not expected here: no kernel',
    ])
  })
})

describe('a project', () => {
  test('without tests fails', () => {
    const totals = someTotals()
    totals.addProject('e2e', { tests: [], errors: [] }, 0)
    expect(totals.failures).toEqual(['e2e: there are no tests'])
  })

  test('that vitest failed for what is no test fails once', () => {
    const totals = someTotals()
    totals.addProject('e2e', { tests: [{ name: 'a', state: 'passed' }], errors: [] }, 1)
    expect(totals.failures).toEqual(['e2e: vitest failed (1), for what is no test'])
  })

  test('that failed for its tests names them', () => {
    const totals = someTotals()
    const tests = [
      { name: 'a', state: 'passed' },
      { name: 'b', state: 'failed' },
    ]
    totals.addProject('e2e', { tests, errors: ['outside'] }, 1)
    expect(totals).toMatchObject({ passed: 1, failures: ['e2e: outside', 'e2e: b'] })
  })
})

test('what is in quarantine is told and fails nothing, and only that', () => {
  const totals = someTotals({ quarantine: [{ project: /^e2e$/, test: /^b$/, reason: 'unknown' }] })
  const failed = (name) => ({ tests: [{ name, state: 'failed' }], errors: [] })
  totals.addProject('e2e', failed('b'), 1)
  expect(totals).toMatchObject({ failures: [], quarantined: ['failed: e2e: b (unknown)'] })
  totals.addProject('kernel', failed('b'), 1)
  expect(totals.failures).toEqual(['kernel: b'])
})
