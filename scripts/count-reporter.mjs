// A vitest reporter that writes to COUNTS_FILE what became of each test: { tests: [{ name, state, reason }], errors: [text] }.
// Tests that could not run because their suite failed are failed. (vitest's own JSON calls them skipped, and gives no reasons.)

import { writeFileSync } from 'node:fs'

export default class CountReporter {
  onTestRunEnd(modules, unhandledErrors) {
    const errors = unhandledErrors.map(({ message }) => `outside of all tests: ${message}`)
    const tests = []
    for (const module of modules) {
      for (const part of [module, ...module.children.allSuites()]) {
        for (const { message } of part.errors()) errors.push(`${part.fullName ?? module.relativeModuleId}: ${message}`)
      }
      for (const test of module.children.allTests()) tests.push(describeTest(test))
    }
    writeFileSync(process.env.COUNTS_FILE ?? '/dev/stdout', JSON.stringify({ tests, errors }))
  }
}

function describeTest(test) {
  const { state, note } = test.result()
  const name = test.fullName
  if (state === 'passed') return { name, state }
  if (state === 'failed' || hasFailedSuite(test)) return { name, state: 'failed' }
  return { name, state: 'skipped', reason: note ?? needs(test) }
}

/** Suites that are skipped as a whole say in their name what they need. */
function needs(test) {
  return /\((needs? [^)]+)\)/.exec(test.fullName)?.[1] ?? 'no reason given'
}

function hasFailedSuite(test) {
  for (let parent = test.parent; parent !== undefined; parent = parent.parent) {
    if (parent.errors?.().length > 0) return true
  }
  return false
}
