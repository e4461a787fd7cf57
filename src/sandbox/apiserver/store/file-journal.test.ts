import { appendFileSync, mkdtempSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { tmpdir } from 'node:os'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { configMaps } from '../resources/config-map.ts'
import { formatLine, openFileJournal } from './file-journal.ts'
import { Store } from './store.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'journal-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

async function open() {
  const store = new Store()
  const journal = await openFileJournal(folder, store)
  const collection = store.collection(configMaps)
  return {
    store,
    journal,
    put: (name: string) =>
      store.put(configMaps, name, { kind: 'ConfigMap', apiVersion: 'v1', metadata: { name }, data: {} }),
    remove: (name: string) => store.delete(configMaps, collection.get(name)!),
    names: () => collection.list().map(({ key }) => key),
    versions: () => collection.list().map(({ object }) => object.metadata.resourceVersion),
  }
}

const log = () => join(folder, 'log.jsonl')
const snapshot = () => join(folder, 'snapshot.jsonl')

describe('openFileJournal()', () => {
  it('brings back what was written, under its revisions', async () => {
    const first = await open()
    first.put('a')
    first.put('b')
    first.remove('a')
    first.put('c')
    await first.journal.close()
    const second = await open()
    expect(second.names()).toEqual(['b', 'c'])
    expect(second.versions()).toEqual(first.versions())
    expect(second.store.revision).toBe(first.store.revision)
    await second.journal.close()
  })

  it('brings back the revision of a deletion that came last', async () => {
    const first = await open()
    first.put('a')
    first.remove('a')
    await first.journal.close()
    await (await open()).journal.close()
    const third = await open()
    expect(third.store.revision).toBe(first.store.revision)
    await third.journal.close()
  })

  it('brings back what was flushed when the process is killed without a word', async () => {
    const first = await open()
    first.put('a')
    await first.journal.flushed()
    // Nobody closes anything.
    const second = await open()
    expect(second.names()).toEqual(['a'])
    await second.journal.close()
    await first.journal.close()
  })

  it('leaves out a line that was cut short', async () => {
    const first = await open()
    first.put('a')
    first.put('b')
    await first.journal.close()
    truncateSync(log(), statSync(log()).size - 7)
    const second = await open()
    expect(second.names()).toEqual(['a'])
    second.put('d')
    await second.journal.close()
    const third = await open()
    expect(third.names()).toEqual(['a', 'd'])
    await third.journal.close()
  })

  it('leaves out what follows a line that was damaged', async () => {
    const first = await open()
    first.put('a')
    first.put('b')
    first.put('c')
    await first.journal.close()
    const lines = readFileSync(log(), 'utf8').split('\n')
    lines[1] = lines[1]!.replace('"b"', '"x"')
    writeFileSync(log(), lines.join('\n'))
    const second = await open()
    expect(second.names()).toEqual(['a'])
    await second.journal.close()
  })

  it('does not take a log for news that the snapshot has already', async () => {
    const first = await open()
    first.put('a')
    first.remove('a')
    first.put('b')
    await first.journal.close()
    const old = readFileSync(log(), 'utf8')
    await (await open()).journal.close() // Folds the log into the snapshot …
    appendFileSync(log(), old) // … and the crash came before the log was emptied.
    const third = await open()
    expect(third.names()).toEqual(['b'])
    await third.journal.close()
  })

  it('refuses to start from a damaged snapshot', async () => {
    const first = await open()
    first.put('a')
    await first.journal.close()
    await (await open()).journal.close()
    writeFileSync(snapshot(), readFileSync(snapshot(), 'utf8').replace('"a"', '"x"'))
    await expect(open()).rejects.toThrow(`Cannot read ${snapshot()}: line 1 is damaged`)
  })

  it('is for its owner only', async () => {
    await (await open()).journal.close()
    for (const path of [log(), snapshot()]) expect(statSync(path).mode & 0o077).toBe(0)
  })
})

describe('flushed()', () => {
  it('waits for everything that was written before', async () => {
    const { journal, put } = await open()
    for (let i = 0; i < 100; i++) put(`a${i}`)
    await journal.flushed()
    expect(readFileSync(log(), 'utf8').split('\n')).toHaveLength(101)
    await journal.close()
  })
})

describe('formatLine()', () => {
  it('puts a checksum in front', () => {
    const line = formatLine({ revision: 1, collection: '/pods', key: 'a', object: null })
    expect(line).toMatch(/^[0-9a-f]{8} \{"revision":1,"collection":"\/pods","key":"a","object":null\}\n$/)
  })
})
