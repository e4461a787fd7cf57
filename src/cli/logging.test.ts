import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { hostname, tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { applyDefaults } from '../config/defaults.ts'
import { settle } from '../config/settle.ts'
import { openLogging } from './logging.ts'
import { parseFlags } from './parse-flags.ts'

let dir: string
let stderr: string

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'logging-'))
  stderr = ''
  vi.spyOn(process.stderr, 'write').mockImplementation((text) => {
    stderr += String(text)
    return true
  })
})

afterEach(() => {
  vi.restoreAllMocks()
  rmSync(dir, { recursive: true, force: true })
})

const { logging: defaults } = settle(applyDefaults({}))

function openWith(...argv: string[]) {
  const logging = openLogging(parseFlags(argv).given)
  logging.apply(defaults)
  return logging.log
}

test('openLogging() prints text to stderr', () => {
  openWith().info('Hello', { a: 1 })
  expect(stderr).toMatch(/^I\d{4} \d\d:\d\d:\d\d\.\d{6} +\d+ logging\.test\.ts:\d+\] "Hello" a=1\n$/)
})

test('Logging.apply() changes format and verbosity while the program runs', () => {
  const logging = openLogging(new Map())
  logging.apply(defaults)
  logging.log.v(2)?.info('unseen')
  logging.apply({ ...defaults, format: 'json', verbosity: 2 })
  logging.log.v(2)?.info('seen')
  expect(JSON.parse(stderr)).toMatchObject({ msg: 'seen', v: 2 })
})

test('Logging.apply() sends errors to stderr and the rest to stdout when streams are split', () => {
  let stdout = ''
  vi.spyOn(process.stdout, 'write').mockImplementation((text) => {
    stdout += String(text)
    return true
  })
  const logging = openLogging(new Map())
  const text = { splitStream: true, infoBufferSize: 0 }
  logging.apply({ ...defaults, options: { ...defaults.options, text } })
  logging.log.info('to stdout')
  logging.log.error(undefined, 'to stderr')
  expect([stdout, stderr]).toEqual([expect.stringContaining('to stdout'), expect.stringContaining('to stderr')])
})

test('openLogging() honours --skip-headers and --add-dir-header', () => {
  openWith('--skip-headers').info('bare')
  expect(stderr).toBe('"bare"\n')
  openWith('--add-dir-header').info('with folder')
  expect(stderr).toMatch(/ cli\/logging\.test\.ts:\d+\] "with folder"/)
})

test('openLogging() writes to --log-file instead of stderr, but errors to both', () => {
  const file = join(dir, 'log')
  const log = openWith('--logtostderr=false', `--log-file=${file}`, '--skip-log-headers')
  log.info('one')
  log.error(undefined, 'two')
  expect(readFileSync(file, 'utf8').split('\n')).toEqual([
    expect.stringContaining('"one"'),
    expect.stringContaining('"two"'),
    '',
  ])
  expect(stderr).toMatch(/^E.*"two"\n$/)
})

test('openLogging() writes files by severity to --log-dir, as klog names them', () => {
  const log = openWith('--logtostderr=false', `--log-dir=${dir}`, '--stderrthreshold=FATAL')
  log.info('one')
  log.warn('two')
  log.error(undefined, 'three')
  expect(readdirSync(dir).filter((name) => name.includes('.log.'))).toHaveLength(3)
  const messages = (severity: string) =>
    [...readFileSync(join(dir, `kube-proxy.${severity}`), 'utf8').matchAll(/\] "(\w+)"/g)].map(([, message]) => message)
  expect(messages('INFO')).toEqual(['one', 'two', 'three'])
  expect(messages('WARNING')).toEqual(['two', 'three'])
  expect(messages('ERROR')).toEqual(['three'])
  expect(stderr).toBe('')
})

test('openLogging() does not write to what waits under the name of its file', () => {
  const victim = join(dir, 'victim')
  writeFileSync(victim, 'untouched')
  const now = Date.now()
  // The names can be guessed: those of the next seconds are taken.
  for (let s = -1; s < 60; s++) {
    const stamp = new Date(now + s * 1000).toISOString().replaceAll(/[-:]/g, '').replace('T', '-').slice(0, 15)
    const name = `kube-proxy.${hostname()}.${userInfo().username}.log.INFO.${stamp}.${process.pid}`
    symlinkSync(victim, join(dir, name))
  }
  openWith('--logtostderr=false', `--log-dir=${dir}`).info('one')
  expect(readFileSync(victim, 'utf8')).toBe('untouched')
  expect(readFileSync(join(dir, 'kube-proxy.INFO'), 'utf8')).toContain('"one"')
  expect(statSync(join(dir, 'kube-proxy.INFO')).mode & 0o777).toBe(0o600)
})

test('openLogging() writes each line once with --one-output, and to stderr too with --alsologtostderr', () => {
  const log = openWith('--logtostderr=false', `--log-dir=${dir}`, '--one-output', '--alsologtostderr')
  log.info('one')
  log.error(undefined, 'two')
  expect(readFileSync(join(dir, 'kube-proxy.INFO'), 'utf8')).not.toContain('"two"')
  expect(stderr.match(/"(one|two)"/g)).toHaveLength(2)
})

test('a disk that is full costs lines, and nothing else', () => {
  const log = openWith('--log-file=/dev/full', '--logtostderr=false', '--alsologtostderr')
  expect(() => log.info('Hello')).not.toThrow()
  expect(stderr).toContain('Hello')
})
