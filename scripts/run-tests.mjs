// The second half of scripts/test: static checks, build, and the vitest projects, counted together.

import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { expectedSkips } from '../test/expected-skips.mjs'
import { quarantine } from '../test/quarantine.mjs'
import { TestTotals } from './test-totals.mjs'
import { findTestFiles } from './test-files.mjs'

const root = join(import.meta.dirname, '..')
const bin = (name) => join(root, 'node_modules', '.bin', name)
const needsRoot = process.getuid?.() === 0 ? undefined : 'needs root'
const needsX64 = process.arch === 'x64' ? undefined : 'User Mode Linux needs Linux on x86_64'

/**
 * Each with a reason not to run it here, if there is one, and what runs it. Lanes run beside each other, the projects of a
 * lane one after the other: most of the time tests with packets wait for some that do not come. What the first lane prints is
 * seen at once, what a project of another prints when it is done.
 */
const lanes = [
  [
    { name: 'kernel', reason: needsRoot },
    { name: 'e2e', reason: needsRoot },
    { name: 'ui', reason: needsRoot, after: () => browser },
    { name: 'release', reason: needsRoot },
  ],
  [
    { name: 'live' },
    { name: 'packet-flow', reason: needsRoot },
    { name: 'sandbox', reason: needsRoot },
    { name: 'faults', reason: needsRoot },
  ],
  [
    {
      name: 'uml',
      reason: needsRoot ?? needsX64,
      inside: ['node', join(root, 'test', 'uml', 'run.mjs'), '--timeout', '2700'],
    },
  ],
]
/** Before the lanes: pure tests, and those that measure. */
const pure = [{ name: 'unit' }, { name: 'growth' }]
const projects = [...pure, ...lanes.flat()]
const totals = new TestTotals({ expectedSkips, quarantine })

// Building takes minutes the first time, so it goes on next to the other tests; the project uml waits for it.
const build =
  needsRoot === undefined ? spawn(join(root, 'scripts', 'uml-kernel'), { stdio: ['ignore', 'ignore', 2] }) : undefined

// So does installing a browser for the page; the project ui waits for it, and says itself that there is none.
const browser =
  needsRoot === undefined
    ? once(spawn(join(root, 'scripts', 'chromium'), { stdio: ['ignore', 'ignore', 2] }), 'exit')
    : undefined

const checks = {
  format: () => succeeds(bin('oxfmt'), '--check'),
  types: () => succeeds(bin('tsc'), '-p', 'tsconfig.json', '--noEmit'),
  'types of the page': () => succeeds(bin('tsc'), '-p', 'src/ui/page'),
  lint: () => succeeds(bin('oxlint'), '--type-aware'),
  // As a user does it: the program builds itself when its sources are newer.
  build: () => succeeds(join(root, 'bin', 'kube-proxy'), '--version'),
  'every test file belongs to a project': hasProjects,
}
for (const [name, check] of Object.entries(checks)) {
  const started = performance.now()
  const ok = await check()
  if (ok) totals.pass()
  else totals.fail(name)
  console.log(`${ok ? 'ok  ' : 'FAIL'} ${name} (${seconds(started)} s)`)
}

await runLane(pure, { isShown: true })
await Promise.all(lanes.map((lane, index) => runLane(lane, { isShown: index === 0 })))

for (const [reason, names] of totals.skips) tell(`skipped, ${reason}:`, names)
tell(
  'told in test/expected-skips.mjs to be skipped here, and not skipped:',
  totals.unusedSkips().map(({ test }) => String(test)),
)
tell('in quarantine (test/quarantine.mjs):', totals.quarantined)
tell('failed:', totals.failures)
console.log(`${totals.passed} passed, ${totals.failures.length} failed, ${totals.skipped} skipped`)
process.exitCode = totals.failures.length === 0 ? 0 : 1
build?.unref()

async function runLane(lane, { isShown }) {
  for (const project of lane) {
    if (project.reason === undefined) await runProject(project, { isShown })
    else skipProject(project)
  }
}

async function runProject({ name, inside, after }, { isShown }) {
  await after?.()
  const started = performance.now()
  const folder = mkdtempSync(join(tmpdir(), 'kube-proxy-ts-test-'))
  const file = join(folder, 'counts.json')
  const reporters = ['--reporter=default', `--reporter=${join(root, 'scripts', 'count-reporter.mjs')}`]
  const machine = inside === undefined ? [] : [...inside, '--share', folder, '--']
  const command = [...machine, bin('vitest'), 'run', '--project', name, ...reporters]
  const output = isShown ? undefined : join(folder, 'output')
  const status = await run(command, { env: { ...process.env, COUNTS_FILE: file }, output })
  try {
    if (output !== undefined) process.stdout.write(readFileSync(output))
    totals.addProject(name, JSON.parse(readFileSync(file, 'utf8')), status)
  } catch (error) {
    totals.fail(`${name}: its tests cannot be counted, it ended with ${status}: ${error.message}`)
  } finally {
    rmSync(folder, { recursive: true, force: true })
    console.log(`     ${name} (${seconds(started)} s)`)
  }
}

function skipProject({ name, reason }) {
  const { status, stdout } = vitestList('--project', name)
  // Files that touch the kernel as soon as they are loaded cannot even be listed without it.
  totals.skipProject(name, { count: JSON.parse(stdout || '[]').length, isAll: status === 0, reason })
}

/** Whether vitest finds every file of tests, each for a project that is run here. Says which it does not. */
function hasProjects() {
  const listed = JSON.parse(vitestList('--filesOnly').stdout || '[]')
  const found = new Map(listed.map(({ file, projectName }) => [relative(root, file), projectName]))
  const lost = findTestFiles(root).filter((file) => !projects.some(({ name }) => name === found.get(file)))
  for (const file of lost) console.error(`${file} belongs to no project that is run`)
  return lost.length === 0
}

function vitestList(...args) {
  return spawnSync(bin('vitest'), ['list', ...args, '--json'], { cwd: root, encoding: 'utf8', maxBuffer: 1 << 27 })
}

function tell(headline, lines) {
  if (lines.length > 0) console.log(`${headline}\n${lines.map((line) => `  ${line}`).join('\n')}`)
}

async function succeeds(...command) {
  return (await run(command)) === 0
}

/** Resolves to the exit code, or the signal. What it prints goes to a file, if one is named. */
async function run([command, ...args], { env = process.env, output } = {}) {
  const to = output === undefined ? 'inherit' : openSync(output, 'w')
  const child = spawn(command, args, { cwd: root, stdio: ['inherit', to, to], env })
  const [code, signal] = await once(child, 'exit')
  return code ?? signal
}

function seconds(started) {
  return ((performance.now() - started) / 1000).toFixed(1)
}
