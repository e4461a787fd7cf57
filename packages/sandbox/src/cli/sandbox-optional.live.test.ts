// The program for nodes works without the sandbox's folder, and says so when it is asked for one.

import { spawnSync } from 'node:child_process'
import { cpSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'

const root = join(import.meta.dirname, '../../../..')
const copy = mkdtempSync(join(tmpdir(), 'without-sandbox-'))
afterAll(() => rmSync(copy, { recursive: true }))

test('without the folder the program runs, and a sandbox is refused with a reason', () => {
  spawnSync(join(root, 'bin/kube-proxy'), ['--version'])
  cpSync(join(root, 'dist'), join(copy, 'dist'), { recursive: true })
  cpSync(join(root, 'package.json'), join(copy, 'package.json'))
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'))
  rmSync(join(copy, 'dist/packages/sandbox'), { recursive: true })
  const run = (...args: string[]) =>
    spawnSync(process.execPath, [join(copy, 'dist/src/cli/main.js'), ...args], { encoding: 'utf8' })
  const reason = 'kube-proxy: Cannot run a sandbox: this installation was made without it; a checkout has it\n'
  expect(run('sandbox')).toMatchObject({ status: 1, stdout: '', stderr: reason })
  expect(run('--version')).toMatchObject({ status: 0, stderr: '' })
  expect(run('--proxy-mode=nope').stderr).toContain('nope')
})
