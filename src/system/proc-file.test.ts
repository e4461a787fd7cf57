import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ProcFile } from './proc-file.ts'

const content = Array.from({ length: 10_000 }, (_, i) => `line ${i}\n`).join('')
let folder: string
let path: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'proc-file-'))
  path = join(folder, 'file')
  writeFileSync(path, content)
})
afterAll(() => rmSync(folder, { recursive: true }))

test('read() and readNow() give all of the file, again and again', async () => {
  const file = new ProcFile(path)
  for (let time = 0; time < 2; time++) {
    const pieces: string[] = []
    expect(await file.read((piece) => pieces.push(piece))).toBe(true)
    expect(pieces.length).toBeGreaterThan(1)
    expect(pieces.join('')).toBe(content)
    const again: string[] = []
    expect(file.readNow((piece) => again.push(piece))).toBe(true)
    expect(again.join('')).toBe(content)
  }
  file.close()
})

test('read() ends when the file is closed meanwhile, and other work goes on while it reads', async () => {
  const file = new ProcFile(path)
  let pieces = 0
  const reading = file.read(() => pieces++)
  await new Promise((resolve) => void setImmediate(resolve))
  file.close()
  expect(await reading).toBe(false)
  expect(pieces).toBeLessThan(Math.ceil(content.length / (1 << 14)))
  expect(await file.read(() => {})).toBe(false)
  expect(file.readNow(() => {})).toBe(false)
})

test('read() says when there is no such file', async () => {
  const file = new ProcFile(join(folder, 'none'))
  expect(await file.read(() => {})).toBe(false)
  expect(file.readNow(() => {})).toBe(false)
  file.close()
})
