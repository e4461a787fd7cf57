import { appendFileSync, mkdtempSync, rmSync, renameSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { modes } from '../modes/all.ts'
import { loadConfiguration } from '../config/load.ts'
import { configurationChanges } from './config-changes.ts'

let dir: string
let abort: AbortController

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'config-changes-'))
  abort = new AbortController()
})

afterEach(() => {
  abort.abort()
  rmSync(dir, { recursive: true, force: true })
})

const text = (body: string) =>
  `apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nmode: nftables\n${body}\n`

test('configurationChanges() yields valid changes, reports wrong ones, and passes over comments', async () => {
  const path = join(dir, 'config')
  const options = { modes }
  writeFileSync(path, text('oomScoreAdj: 1'))
  const { loaded } = loadConfiguration(text('oomScoreAdj: 1'), options)
  const accepted: number[] = []
  const changes = configurationChanges(
    {
      path,
      text: text('oomScoreAdj: 1'),
      loaded,
      options,
      onAccepted: ({ loaded: { config } }) => accepted.push(config.oomScoreAdj),
    },
    abort.signal,
  )
  const after = async (body: string) => {
    const next = changes.next()
    await new Promise((resolve) => setTimeout(resolve, 20))
    writeFileSync(path, text(body))
    return (await next).value
  }

  expect(await after('oomScoreAdj: 2')).toMatchObject({ kind: 'changed', loaded: { config: { oomScoreAdj: 2 } } })
  expect(await after('oomScoreAdj: 9999')).toMatchObject({
    kind: 'invalid',
    error: { message: 'oomScoreAdj: Invalid value: 9999: must be within the range [-1000, 1000] (line 4)' },
  })
  // Back to what is in force: no change. Then a comment: no change either. Only the third write is one.
  const next = changes.next()
  for (const body of ['oomScoreAdj: 2', 'oomScoreAdj: 2 # two', 'oomScoreAdj: 3']) {
    await new Promise((resolve) => setTimeout(resolve, 1500))
    // At once: what is half written counts as wrong.
    writeFileSync(`${path}.new`, text(body))
    renameSync(`${path}.new`, path)
  }
  expect((await next).value).toMatchObject({ kind: 'changed', loaded: { config: { oomScoreAdj: 3 } } })
  expect(accepted).toEqual([2, 3])
})

test('configurationChanges() waits for the second half of a file, though the first is valid', async () => {
  const path = join(dir, 'slow.yaml')
  const before = text('oomScoreAdj: 4')
  const [half] = before.split('mode:')
  writeFileSync(path, before)
  const { loaded } = loadConfiguration(before, { modes })
  const seen: unknown[] = []
  const file = { path, text: before, loaded, options: { modes }, onAccepted: () => {} }
  const changes = configurationChanges(file, abort.signal)
  const next = changes.next().then(({ value }) => seen.push(value))
  await new Promise((resolve) => setTimeout(resolve, 100))
  writeFileSync(path, half!)
  await new Promise((resolve) => setTimeout(resolve, 200))
  expect(seen).toEqual([])
  appendFileSync(path, 'mode: nftables\noomScoreAdj: 5\n')
  await next
  expect(seen).toMatchObject([{ kind: 'changed', loaded: { config: { mode: 'nftables', oomScoreAdj: 5 } } }])
})

test('configurationChanges() reports a file that cannot be read', async () => {
  const path = join(dir, 'missing')
  const { loaded } = loadConfiguration(text(''), { modes })
  const file = { path, text: text(''), loaded, options: { modes }, onAccepted: () => {} }
  const { value } = await configurationChanges(file, abort.signal).next()
  expect(value).toMatchObject({
    kind: 'invalid',
    error: { message: expect.stringMatching(/^Cannot read the configuration file .*missing: ENOENT/) as string },
  })
})
