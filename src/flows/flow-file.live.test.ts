import { existsSync, mkdtempSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { flowFile } from './flow-file.ts'
import type { FlowRecord } from './flow-record.ts'

let folder: string
let path: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'flow-file-'))
  path = join(folder, 'flows.jsonl')
})
afterEach(() => rmSync(folder, { recursive: true }))

const record = { timeMs: 0, event: 'ended', service: 'default/web', end: 'closed' } as FlowRecord
const read = (file = path) =>
  readFileSync(file, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>)

test('a line for each connection, and one for those that were left out', async () => {
  const sink = flowFile({ path, node: 'node-1' })
  await sink.send([record, record], 0)
  await sink.send([record], 7)
  const lines = read()
  expect(lines).toHaveLength(4)
  expect(lines[0]).toMatchObject({
    time: '1970-01-01T00:00:00.000Z',
    event: 'ended',
    observedBy: 'node-1',
    service: 'default/web',
    end: 'closed',
  })
  expect(lines[3]).toMatchObject({ event: 'leftOut', connections: 7 })
  expect(statSync(path).mode & 0o777).toBe(0o600)
})

test('it is never larger than allowed: the one before is kept, and no other', async () => {
  const sink = flowFile({ path, node: 'node-1', largest: 1000 })
  for (let i = 0; i < 100; i++) await sink.send([record], 0)
  expect(statSync(path).size).toBeLessThanOrEqual(1000)
  expect(statSync(`${path}.1`).size).toBeLessThanOrEqual(1000)
  expect(existsSync(`${path}.2`)).toBe(false)
})

test('another program may move it away', async () => {
  const sink = flowFile({ path, node: 'node-1' })
  await sink.send([record], 0)
  renameSync(path, join(folder, 'moved'))
  await sink.send([record], 0)
  expect(read()).toHaveLength(1)
})

test('a folder that is not there is an error', async () => {
  const sink = flowFile({ path: join(folder, 'none', 'flows.jsonl'), node: 'node-1' })
  await expect(sink.send([record], 0)).rejects.toThrow('ENOENT')
})
