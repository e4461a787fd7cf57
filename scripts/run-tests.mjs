// The second half of scripts/test: static checks, build, and the vitest projects, counted together.

import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const root = join(import.meta.dirname, '..')
const bin = (name) => join(root, 'node_modules', '.bin', name)
const needsRoot = process.getuid?.() === 0 ? undefined : 'needs root'

/** What test/uml/run.mjs says where it cannot start a kernel. */
const NO_KERNEL = 77

/**
 * Each with a reason not to run it here, if there is one, and what runs it. Most of the time tests with packets wait for
 * some that do not come: time for a project beside them, whose output is shown in the end.
 */
const projects = [
  { name: 'unit' },
  { name: 'kernel', reason: needsRoot },
  { name: 'e2e', reason: needsRoot },
  { name: 'uml', reason: needsRoot, inside: ['node', join(root, 'test', 'uml', 'run.mjs')], isBeside: true },
  { name: 'packet-flow', reason: needsRoot },
  { name: 'faults', reason: needsRoot },
  { name: 'sandbox', reason: needsRoot },
]
const total = { passed: 0, failed: 0, skipped: 0 }
/** Names by reason. */
const skips = new Map()
/** What passed only when it was tried again. */
const retried = []

// Building takes minutes the first time, so it goes on next to the other tests; the project uml waits for it.
const build =
  needsRoot === undefined ? spawn(join(root, 'scripts', 'uml-kernel'), { stdio: ['ignore', 'ignore', 2] }) : undefined

for (const [name, command, args] of [
  ['format', bin('prettier'), ['--check', '--log-level=warn', '.']],
  ['types', bin('tsc'), ['-p', 'tsconfig.json', '--noEmit']],
  ['lint', bin('oxlint'), ['--type-aware']],
  // As a user does it: the program builds itself when its sources are newer.
  ['build', join(root, 'bin', 'kube-proxy'), ['--version']],
]) {
  const started = performance.now()
  const ok = (await run([command, ...args])) === 0
  total[ok ? 'passed' : 'failed']++
  console.log(`${ok ? 'ok  ' : 'FAIL'} ${name} (${seconds(started)} s)`)
}

const beside = []
for (const project of projects) {
  const done = project.reason === undefined ? runProject(project) : skipProject(project)
  if (project.isBeside) beside.push(done)
  else await done
}
await Promise.all(beside)

for (const [reason, names] of skips) console.log(`skipped, ${reason}:\n${names.map((name) => `  ${name}`).join('\n')}`)
if (retried.length > 0) console.log(`passed when tried again:\n${retried.map((name) => `  ${name}`).join('\n')}`)
console.log(`${total.passed} passed, ${total.failed} failed, ${total.skipped} skipped`)
process.exitCode = total.failed === 0 ? 0 : 1
build?.unref()

async function runProject({ name, inside, isBeside }) {
  const started = performance.now()
  const folder = mkdtempSync(join(tmpdir(), 'kube-proxy-ts-test-'))
  const file = join(folder, 'counts.json')
  const reporters = ['--reporter=default', `--reporter=${join(root, 'scripts', 'count-reporter.mjs')}`]
  const machine = inside === undefined ? [] : [...inside, '--share', folder, '--']
  const command = [...machine, bin('vitest'), 'run', '--project', name, '--passWithNoTests', ...reporters]
  const output = isBeside ? join(folder, 'output') : undefined
  const status = await run(command, { env: { ...process.env, COUNTS_FILE: file }, output })
  try {
    if (output !== undefined) process.stdout.write(readFileSync(output))
    if (inside !== undefined && status === NO_KERNEL)
      return skipProject({ name, reason: 'no kernel of its own, see above' })
    const counts = JSON.parse(readFileSync(file, 'utf8'))
    total.passed += counts.passed
    // vitest may also fail for what is no test: an error outside of all of them.
    total.failed += counts.failed === 0 && status !== 0 ? 1 : counts.failed
    total.skipped += counts.skipped.length
    retried.push(...counts.retried)
    for (const skip of counts.skipped) tellSkip(skip.reason, skip.name)
  } catch (error) {
    console.error(`Cannot count the tests of ${name}: ${error.message}`)
    total.failed++
  } finally {
    rmSync(folder, { recursive: true, force: true })
    console.log(`     ${name} (${seconds(started)} s)`)
  }
}

async function skipProject({ name, reason }) {
  const listed = spawnSync(bin('vitest'), ['list', '--project', name, '--json'], { cwd: root, encoding: 'utf8' })
  const { length } = JSON.parse(listed.stdout || '[]')
  total.skipped += length
  // Files that touch the kernel as soon as they are loaded cannot even be listed without it.
  tellSkip(reason, `${listed.status === 0 ? '' : 'more than '}${length} tests of the project ${name}`)
}

function tellSkip(reason, name) {
  skips.set(reason, [...(skips.get(reason) ?? []), name])
}

/** Resolves to the exit code. What it prints goes to a file, if one is named. */
async function run([command, ...args], { env = process.env, output } = {}) {
  const to = output === undefined ? 'inherit' : openSync(output, 'w')
  const child = spawn(command, args, { cwd: root, stdio: ['inherit', to, to], env })
  const [code] = await once(child, 'exit')
  return code
}

function seconds(started) {
  return ((performance.now() - started) / 1000).toFixed(1)
}
