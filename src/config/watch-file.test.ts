import { mkdirSync, mkdtempSync, readlinkSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { foldersOnTheWay } from '../lib/watch-path.ts'
import { watchFile } from './watch-file.ts'

let dir: string
let abort: AbortController

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'watch-file-'))
  abort = new AbortController()
})

afterEach(() => {
  abort.abort()
  rmSync(dir, { recursive: true, force: true })
})

/** Polls rarely enough for a test that only passes through events. */
function watch(file: string, known: string, pollMs: number = 60_000) {
  const changes = watchFile(file, known, { signal: abort.signal, debounceMs: 5, pollMs })
  return async () => {
    const { value } = await changes.next()
    if (value === undefined) return undefined
    return 'text' in value ? value.text : (value.error as NodeJS.ErrnoException).code
  }
}

/** Lets the watcher reach its waiting place. */
const settled = () => new Promise((resolve) => setTimeout(resolve, 30))

/** What the kubelet does: a new folder, a link to it under another name, renamed over `..data`. */
function projectConfigMap(version: string, text: string): void {
  mkdirSync(join(dir, version))
  writeFileSync(join(dir, version, 'config.conf'), text)
  symlinkSync(version, join(dir, '..data_tmp'))
  let old: string | undefined
  try {
    old = readlinkSync(join(dir, '..data'))
  } catch {
    symlinkSync('..data/config.conf', join(dir, 'config.conf'))
  }
  renameSync(join(dir, '..data_tmp'), join(dir, '..data'))
  if (old !== undefined) rmSync(join(dir, old), { recursive: true })
}

test('watchFile() sees a file that is written in place', async () => {
  const file = join(dir, 'a')
  writeFileSync(file, 'one')
  const next = watch(file, 'one')
  const change = next()
  await settled()
  writeFileSync(file, 'two')
  expect(await change).toBe('two')
})

test('watchFile() sees a file that is renamed over', async () => {
  const file = join(dir, 'a')
  writeFileSync(file, 'one')
  const next = watch(file, 'one')
  const change = next()
  await settled()
  writeFileSync(join(dir, 'b'), 'two')
  renameSync(join(dir, 'b'), file)
  expect(await change).toBe('two')
})

test('watchFile() sees every swap of a ConfigMap', async () => {
  projectConfigMap('..v1', 'one')
  const next = watch(join(dir, 'config.conf'), 'one')
  for (const [version, text] of [
    ['..v2', 'two'],
    ['..v3', 'three'],
    ['..v4', 'four'],
  ] as const) {
    const change = next()
    await settled()
    projectConfigMap(version, text)
    expect(await change).toBe(text)
  }
})

test('watchFile() sees a change in a file behind a link, and a link that is turned', async () => {
  mkdirSync(join(dir, 'x'))
  mkdirSync(join(dir, 'y'))
  writeFileSync(join(dir, 'x/real'), 'one')
  writeFileSync(join(dir, 'y/real'), 'three')
  symlinkSync('x', join(dir, 'folder'))
  const next = watch(join(dir, 'folder/real'), 'one')
  let change = next()
  await settled()
  writeFileSync(join(dir, 'x/real'), 'two')
  expect(await change).toBe('two')
  change = next()
  await settled()
  symlinkSync('y', join(dir, 'new'))
  renameSync(join(dir, 'new'), join(dir, 'folder'))
  expect(await change).toBe('three')
})

test('watchFile() reports nothing while the content stays the same', async () => {
  const file = join(dir, 'a')
  writeFileSync(file, 'one')
  const next = watch(file, 'one')
  const change = next()
  for (let i = 0; i < 5; i++) {
    await settled()
    // Written over: between emptying it and writing it, a file is another one.
    writeFileSync(file, 'one', { flag: 'r+' })
  }
  await settled()
  writeFileSync(file, 'two', { flag: 'r+' })
  expect(await change).toBe('two')
})

test('watchFile() reports once that a file is gone, and then what is there when it is back', async () => {
  const file = join(dir, 'a')
  writeFileSync(file, 'one')
  const next = watch(file, 'one')
  let change = next()
  await settled()
  rmSync(file)
  expect(await change).toBe('ENOENT')
  change = next()
  await settled()
  writeFileSync(join(dir, 'unrelated'), '')
  await settled()
  writeFileSync(join(dir, 'b'), 'one')
  renameSync(join(dir, 'b'), file)
  expect(await change).toBe('one')
})

test('watchFile() reports at once what changed before it began to watch', async () => {
  const file = join(dir, 'a')
  writeFileSync(file, 'two')
  expect(await watch(file, 'one')()).toBe('two')
})

test('watchFile() finds changes by polling where no event comes', async () => {
  // A folder that does not exist yet cannot be watched.
  const file = join(dir, 'later/a')
  const next = watch(file, 'one', 20)
  expect(await next()).toBe('ENOENT')
  mkdirSync(join(dir, 'later'))
  writeFileSync(join(dir, 'later/tmp'), 'two')
  renameSync(join(dir, 'later/tmp'), file)
  expect(await next()).toBe('two')
})

test('watchFile() ends when it is reported to', async () => {
  const file = join(dir, 'a')
  writeFileSync(file, 'one')
  const change = watch(file, 'one')()
  await settled()
  abort.abort()
  expect(await change).toBeUndefined()
})

test('foldersOnTheWay() names every folder in which a link or the file stands, and survives a loop', () => {
  projectConfigMap('..v1', 'one')
  expect(new Set(foldersOnTheWay(join(dir, 'config.conf')))).toEqual(new Set([dir, join(dir, '..v1')]))
  symlinkSync('loop', join(dir, 'loop'))
  expect(new Set(foldersOnTheWay(join(dir, 'loop')))).toEqual(new Set([dir]))
})
