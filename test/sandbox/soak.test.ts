// The soak itself, for half a minute: that it runs, breaks things, finds nothing wrong, and leaves nothing behind.

import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { checkout } from '../support/checkout.ts'
import type { Report } from '../soak/report.ts'

const folder = mkdtempSync(join(tmpdir(), 'soak-test-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** The run itself, its start and its end, on a machine that does other things as well. */
const LIMIT_MS = 600_000

function runSoak(...args: readonly string[]) {
  return spawnSync('npm', ['run', '--silent', 'soak', '--', ...args], {
    cwd: checkout,
    encoding: 'utf8',
    timeout: LIMIT_MS,
  })
}

test('half a minute of nftables loses nothing, follows every change, and does not grow', { timeout: LIMIT_MS }, () => {
  const json = join(folder, 'report.json')
  // This seed makes changes of all kinds and several faults early.
  const { status, stdout, stderr } = runSoak('--minutes', '0.5', '--mode', 'nftables', '--seed', '1', '--json', json)
  expect(status, stdout + stderr).toBe(0)
  expect(stdout).toMatch(/^\d+ s: made \d+ tcp, \d+ long, \d+ udp; lost 0, /m)
  expect(stdout).toMatch(/\nPASSED\n/)
  const report = JSON.parse(readFileSync(json, 'utf8')) as Report
  expect(report).toMatchObject({ lost: 0, losses: [], unconverged: [], failures: [] })
  for (const made of Object.values(report.made)) expect(made).toBeGreaterThan(5)
  expect(report.convergence.count).toBeGreaterThan(5)
  expect(Object.keys(report.faults)).not.toEqual([])
  expect(report.kernel['elements']![0]).toBeGreaterThan(100)
})

test('an option that makes no sense is named, with what is allowed', () => {
  expect(runSoak('--mode', 'ebpf')).toMatchObject({
    status: 2,
    stderr: 'soak: Cannot use --mode ebpf: must be one of nftables, iptables, ipvs, userspace\n',
  })
  expect(runSoak('--minutes', '0')).toMatchObject({
    status: 2,
    stderr: 'soak: Cannot use --minutes 0: must be a number from 0.1 to 1440\n',
  })
})
