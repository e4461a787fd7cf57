import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { processStart } from '../../../../src/system/process.ts'
import { InstanceFolder } from '../instance/instance-folder.ts'
import { runSandboxStatus } from './sandbox-status.ts'

test('the status of a sandbox does not depend on another that cannot be asked', async () => {
  const root = mkdtempSync(join(tmpdir(), 'sandboxes-'))
  vi.stubEnv('KUBE_PROXY_SANDBOX_DIR', root)
  const out = vi.spyOn(process.stdout, 'write').mockReturnValue(true)
  const err = vi.spyOn(process.stderr, 'write').mockReturnValue(true)
  const page = { name: 'here', pid: 1, upSeconds: 2, apiServer: 'https://x', kubeconfig: '/k', nodes: [], pods: [] }
  const server = createServer((_, response) => response.end(JSON.stringify(page)))
  onTestFinished(() => {
    vi.unstubAllEnvs()
    vi.restoreAllMocks()
    server.close()
    rmSync(root, { recursive: true })
  })
  for (const name of ['away', 'here']) {
    const { pid } = process
    const record = { name, pid, processStart: processStart(pid)!, index: 0, privilege: 'root' } as const
    new InstanceFolder(root, name).create(record)
  }
  await new Promise<void>((done) => server.listen(join(root, 'here', 'control.sock'), done))

  expect(await runSandboxStatus({ name: undefined, output: 'text' })).toBe(0)
  expect(out.mock.calls.join('')).toContain('Sandbox here: process 1')
  expect(err.mock.calls.join('')).toMatch(/^kube-proxy: Cannot ask sandbox away: .*ENOENT/)
  await expect(runSandboxStatus({ name: 'away', output: 'text' })).rejects.toThrow('Cannot ask sandbox away')
})
