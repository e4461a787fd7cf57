// The iptables mode when this process has no file descriptor left: to listen with, or to start a program.

import { execFileSync } from 'node:child_process'
import { closeSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { Iptables } from '../../src/iptables/driver.ts'
import { findPrograms } from '../../src/iptables/probe.ts'
import { type IptablesWatch, watchIptables } from '../../src/iptables/watch.ts'
import { ManualClock } from '../support/manual-clock.ts'
import type { Family } from '../../src/lib/ip.ts'
import { runProgram } from '../../src/system/run-program.ts'
import { unshareNetwork } from '../../src/system/netns.ts'
import { eventually } from '../support/eventually.ts'

const isRoot = process.getuid?.() === 0
const POLL_MS = 1000

describe.skipIf(!isRoot)('without a file descriptor (needs root)', () => {
  const folder = mkdtempSync(join(tmpdir(), 'iptables-'))
  let clock: ManualClock
  let watch: IptablesWatch
  let changes: Family[]
  let failures: unknown[]

  beforeAll(() => {
    unshareNetwork()
    process.env['XTABLES_LOCKFILE'] = join(folder, 'xtables.lock')
    const [, limit = ''] = /Max open files +(\d+)/.exec(readFileSync('/proc/self/limits', 'utf8')) ?? []
    const setLimit = (to: string) => execFileSync('prlimit', ['--pid', `${process.pid}`, `--nofile=${to}:`])
    // Few enough to use them all up.
    setLimit(`${Math.max(...readdirSync('/proc/self/fd').map(Number)) + 100}`)
    return () => {
      setLimit(limit)
      rmSync(folder, { recursive: true })
    }
  })

  beforeEach(async () => {
    const programs = (await findPrograms()).find(({ backend }) => backend === 'nft')
    if (programs === undefined) throw new Error('Cannot test: iptables-nft is not installed')
    clock = new ManualClock()
    changes = []
    failures = []
    watch = watchIptables({
      iptables: new Map([[4, new Iptables({ programs, family: 4, onContention: () => {} })]]),
      canary: { chain: 'CANARY', tables: ['nat'] },
      pollMs: POLL_MS,
      clock,
      onChange: (family) => changes.push(family),
      onPoll: () => {},
      onFailure: (error) => failures.push(error),
    })
  })
  afterEach(() => watch.close())

  /** A large change of ours, at whose end the watch cannot be opened again. */
  async function failToListen(): Promise<void> {
    const taken: number[] = []
    await watch.quietly(() => {
      takeAll(taken)
      return Promise.resolve()
    })
    for (const fd of taken) closeSync(fd)
    expect(failures).toHaveLength(1)
    expect(String(failures[0])).toContain('EMFILE')
  }

  function takeAll(taken: number[]): void {
    try {
      for (;;) taken.push(openSync('/dev/null', 'r'))
    } catch {
      // None is left.
    }
  }

  async function expectToHear(): Promise<void> {
    changes = []
    execFileSync('iptables-nft', ['-t', 'nat', '-N', `MINE-${Math.random().toString(36).slice(2, 8)}`])
    await eventually('it hears of a change', () => (changes.length > 0 ? undefined : 'it does not'))
  }

  it('listens again when the time to look has come, and counts what it did not hear as changed', async () => {
    await failToListen()
    expect(changes).toEqual([])
    await clock.advance(POLL_MS)
    expect(changes).toEqual([4])
    await expectToHear()
  })

  it('does so as well when a large change comes first', async () => {
    await failToListen()
    await watch.quietly(() => Promise.resolve())
    expect(changes).toEqual([4])
    await expectToHear()
    await clock.advance(POLL_MS)
    expect(failures).toHaveLength(1)
  })

  it('starts no program, and keeps none of the few that are left', async () => {
    const before = readdirSync('/proc/self/fd').length
    const ends: string[] = []
    for (let spare = 0; spare <= 8; spare++) {
      const taken: number[] = []
      takeAll(taken)
      for (const fd of taken.splice(0, spare)) closeSync(fd)
      ends.push(
        await runProgram('true', []).then(
          ({ code }) => `${code}`,
          (error: NodeJS.ErrnoException) => `${error.code}`,
        ),
      )
      for (const fd of taken) closeSync(fd)
    }
    expect(ends).toEqual([...Array.from({ length: 8 }, () => 'EMFILE'), '0'])
    expect(readdirSync('/proc/self/fd').length).toBe(before)
  })

  it('does not begin to listen when it is closed', async () => {
    await failToListen()
    watch.close()
    const before = readdirSync('/proc/self/fd').length
    await clock.advance(2 * POLL_MS)
    await watch.quietly(() => Promise.resolve())
    expect(readdirSync('/proc/self/fd').length).toBe(before)
    expect(changes).toEqual([])
  })
})
