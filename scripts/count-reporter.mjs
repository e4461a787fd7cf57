// A vitest reporter that writes counts to COUNTS_FILE: { passed, failed, skipped: [{ name, reason }], retried: [name] }. Tests
// that could not run because their suite failed count as failed. (vitest's own JSON calls them skipped, and gives no reasons.)

import { writeFileSync } from 'node:fs'

export default class CountReporter {
  onTestRunEnd(modules, unhandledErrors) {
    const counts = { passed: 0, failed: unhandledErrors.length, skipped: [], retried: [] }
    for (const module of modules) {
      if (module.errors().length > 0) counts.failed++
      for (const suite of module.children.allSuites()) if (suite.errors().length > 0) counts.failed++
      for (const test of module.children.allTests()) {
        const { state, note } = test.result()
        if (test.diagnostic()?.flaky === true) counts.retried.push(test.fullName)
        if (state === 'passed') counts.passed++
        else if (state === 'failed' || hasFailedSuite(test)) counts.failed++
        else counts.skipped.push({ name: test.fullName, reason: note ?? needs(test) })
      }
    }
    writeFileSync(process.env.COUNTS_FILE ?? '/dev/stdout', JSON.stringify(counts))
  }
}

/** Suites that are skipped as a whole say in their name what they need. */
function needs(test) {
  return /\((needs [^)]+)\)/.exec(test.fullName)?.[1] ?? 'no reason given'
}

function hasFailedSuite(test) {
  for (let parent = test.parent; parent !== undefined; parent = parent.parent) {
    if (parent.errors?.().length > 0) return true
  }
  return false
}
