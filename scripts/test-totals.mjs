// Adds up what became of tests, and judges skips (test/expected-skips.mjs) and failures (test/quarantine.mjs).

export class TestTotals {
  passed = 0
  skipped = 0
  /** What failed, for the last lines. */
  failures = []
  /** Names of tests that were skipped as expected, by their reason. */
  skips = new Map()
  /** What failed, or passed, without counting as a failure. */
  quarantined = []
  #expectedSkips
  #quarantine
  #projects = new Set()
  #used = new Set()

  constructor({ expectedSkips, quarantine }) {
    this.#expectedSkips = expectedSkips
    this.#quarantine = quarantine
  }

  pass() {
    this.passed++
  }

  fail(what) {
    this.failures.push(what)
  }

  /** Names the project, and what count-reporter.mjs wrote about it. `status` is that of vitest. */
  addProject(project, { tests, errors }, status) {
    this.#projects.add(project)
    for (const error of errors) this.fail(`${project}: ${error}`)
    for (const test of tests) this.#addTest(project, test)
    if (tests.length === 0) this.fail(`${project}: there are no tests`)
    const isExplained = errors.length > 0 || tests.some(({ state }) => state === 'failed')
    if (status !== 0 && !isExplained) this.fail(`${project}: vitest failed (${status}), for what is no test`)
  }

  /** All tests of a project are skipped. */
  skipProject(project, { count, isAll, reason }) {
    this.#projects.add(project)
    this.#skip(project, `${isAll ? '' : 'more than '}${count} tests of the project ${project}`, reason, count)
  }

  /** Entries of the list that apply here and matched nothing, though their project ran. */
  unusedSkips() {
    const hasRun = ({ project }) => [...this.#projects].some((name) => project.test(name))
    return this.#expectedSkips.filter((entry) => entry.isExpected && hasRun(entry) && !this.#used.has(entry))
  }

  #addTest(project, { name, state, reason }) {
    const quarantined = this.#quarantine.find((entry) => entry.project.test(project) && entry.test.test(name))
    if (state === 'skipped') this.#skip(project, name, reason, 1)
    else if (quarantined !== undefined) this.quarantined.push(`${state}: ${project}: ${name} (${quarantined.reason})`)
    else if (state === 'passed') this.passed++
    else this.fail(`${project}: ${name}`)
  }

  #skip(project, name, reason, count) {
    const allows = (entry) =>
      entry.isExpected && entry.project.test(project) && entry.test.test(name) && entry.reason.test(reason)
    const entry = this.#expectedSkips.find(allows)
    if (entry === undefined) return this.fail(`${project}: ${name}: skipped, which is not expected here: ${reason}`)
    this.#used.add(entry)
    this.skipped += count
    this.skips.set(reason, [...(this.skips.get(reason) ?? []), name])
  }
}
