// The rules of the iptables mode in a real kernel, with both backends: what we plan is what iptables-save prints.

import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { Iptables, type Contention } from '../../src/iptables/driver.ts'
import { ensureCounter } from '../../src/nfacct/counters.ts'
import { findPrograms } from '../../src/iptables/probe.ts'
import { saysNoSuchChain } from '../../src/iptables/restore-error.ts'
import { unshareNetwork } from '../../src/system/netns.ts'
import type { Family } from '../../src/lib/ip.ts'
import { silentLogger } from '../../src/lib/log.ts'
import { iptablesPlanner } from '../../src/modes/iptables/plan/planner.ts'
import { COUNTERS } from '../../src/modes/iptables/plan/names.ts'
import { IptablesProgrammer } from '../../src/modes/iptables/programmer.ts'
import { parseTables } from '../../src/iptables/parse.ts'
import type { IptablesPrograms } from '../../src/iptables/programs.ts'
import type { Backend } from '../../src/iptables/script.ts'
import { eventually } from '../support/eventually.ts'
import { aNodeView, sampleViews } from '../support/arbitrary-views.ts'

const isRoot = process.getuid?.() === 0
const folder = mkdtempSync(join(tmpdir(), 'iptables-'))
let installed: readonly IptablesPrograms[] = []

beforeAll(async () => {
  if (isRoot) unshareNetwork()
  // The machine's own lock is none of our business.
  process.env['XTABLES_LOCKFILE'] = join(folder, 'xtables.lock')
  installed = await findPrograms()
})
afterAll(() => rmSync(folder, { recursive: true }))

const kinds = ([4, 6] as const).flatMap((family) =>
  (['nft', 'legacy'] as const).map((backend) => ({ family, backend })),
)

describe.skipIf(!isRoot).each(kinds)('iptables-$backend for IPv$family (needs root)', ({ family, backend }) => {
  const node = aNodeView({ family, nodePortAddresses: { kind: 'all' } })
  const command = (suffix: string) => `${family === 4 ? 'iptables' : 'ip6tables'}-${backend}${suffix}`
  const run = (args: readonly string[]) =>
    execFileSync(command(''), args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
  const restore = (input: string) => execFileSync(command('-restore'), ['--noflush'], { input })
  const save = () => execFileSync(command('-save'), { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
  const views = (seed: number) => sampleViews(family, seed)

  afterEach(() => {
    for (const table of ['nat', 'filter', 'mangle']) {
      run(['-w', '-t', table, '-F'])
      run(['-w', '-t', table, '-X'])
    }
  })

  it('is read back as it was planned: a second sync changes nothing', async () => {
    for (let seed = 1; seed <= 8; seed++) {
      const { programmer } = open(family, backend)
      await programmer.syncAll(node, views(seed))
      expect((await programmer.syncAll(node, views(seed))).transactions, `seed ${seed}`).toBe(0)
    }
  })

  it('follows any change', async () => {
    const { programmer } = open(family, backend)
    let before = views(0)
    await programmer.syncAll(node, before)
    for (let seed = 100; seed < 1000; seed += 100) {
      const after = views(seed)
      await programmer.sync(
        node,
        after.map((view, i) => ({ name: view.name, before: before[i], after: view })),
      )
      before = after
    }
    expect((await programmer.syncAll(node, before)).transactions).toBe(0)
    expect(save()).toContain('KUBE-SVC-')
  })

  it('leaves the rules of users alone, also when services go', async () => {
    restore('*nat\n:MINE - [0:0]\n-A MINE -j RETURN\n-A PREROUTING -j MINE\nCOMMIT\n')
    const { programmer } = open(family, backend)
    await programmer.syncAll(node, views(1))
    await programmer.syncAll(node, [])
    const nat = parseTables(save()).get('nat')
    expect(nat?.get('MINE')).toEqual(['-j RETURN'])
    expect(nat?.get('PREROUTING')?.at(-1)).toBe('-j MINE')
    expect([...nat!.keys()].filter((name) => /^KUBE-(SVC|SVL|EXT|FW|SEP)-/.test(name))).toEqual([])
  })

  it('restores what others deleted, and only that', async () => {
    const { programmer } = open(family, backend)
    await programmer.syncAll(node, views(2))
    const before = save()
    run(['-w', '-t', 'nat', '-F', 'KUBE-SERVICES'])
    run(['-w', '-t', 'filter', '-F', 'INPUT'])
    const { transactions, operations } = await programmer.syncAll(node, views(2))
    expect(transactions).toBe(1)
    expect(operations).toBeLessThan(60)
    expect(essence(save())).toEqual(essence(before))
  })

  it('programs all but the service whose rules are refused, and names it', async () => {
    const { programmer, refused } = open(family, backend)
    const all = views(3)
    const wrong = all.findIndex(({ backends }) => backends.length > 0)
    const [clusterIp, ...others] = all[wrong]!.frontends
    const broken = { ...all[wrong]!, frontends: [{ ...clusterIp!, port: 99999 }, ...others] }
    await programmer.syncAll(node, all.with(wrong, broken))
    expect(refused).toEqual([broken.name])
    const { programmer: reference } = open(family, backend)
    expect((await reference.syncAll(node, all.toSpliced(wrong, 1))).transactions).toBe(0)
  })

  it('knows whether a chain is there, whatever else is', async () => {
    const { driver } = open(family, backend)
    expect(await driver.hasChain('mangle', 'MINE')).toBe(false)
    restore('*mangle\n:MINE - [0:0]\nCOMMIT\n')
    expect(await driver.hasChain('mangle', 'MINE')).toBe(true)
    expect(await driver.hasChain('mangle', 'YOURS')).toBe(false)
    // Without the right to look, it does not say that the chain is gone.
    const asked = spawnSync('setpriv', ['--bounding-set', '-net_admin', command(''), '-t', 'mangle', '-S', 'YOURS'])
    expect(asked.status).not.toBe(0)
    expect(saysNoSuchChain(asked.stderr.toString())).toBe(false)
  })

  // iptables-nft takes none.
  if (backend === 'legacy') {
    it('waits for the lock and says who holds it', async () => {
      const { programmer, contentions } = open(family, backend)
      const lock = process.env['XTABLES_LOCKFILE']!
      // Without a fork the lock ends with this process.
      const holder = spawn('flock', ['--no-fork', lock, 'sleep', '60'])
      await eventually('the lock is held', () =>
        spawnSync('flock', ['--nonblock', lock, 'true']).status === 1 ? undefined : 'it is free',
      )
      const syncing = programmer.syncAll(node, views(4))
      await eventually('that is noticed', () => (contentions.length > 0 ? undefined : 'it is not'))
      holder.kill()
      await syncing
      expect(contentions[0]?.holder).toMatch(/^(flock|sleep) \(pid \d+\)$/)
      expect(save()).toContain('KUBE-SERVICES')
    })
  }
})

function open(family: Family, backend: Backend) {
  const programs = installed.find((each) => each.backend === backend)
  if (programs === undefined) throw new Error(`Cannot test: iptables-${backend} is not installed`)
  const refused: string[] = []
  const contentions: Contention[] = []
  const driver = new Iptables({ programs, family, onContention: (contention) => contentions.push(contention) })
  const programmer = new IptablesProgrammer({
    planner: iptablesPlanner({
      localhostNodePorts: 'allowed',
      invalidPackets: 'drop',
      masqueradePorts: 'fully',
      counters: new Set(Object.values(COUNTERS).filter(ensureCounter)),
    }),
    driver,
    log: silentLogger,
    counts: { rules: () => {}, restoreFailed: () => {} },
    onRefused: (service) => refused.push(service),
  })
  return { driver, programmer, refused, contentions }
}

/** The lines of iptables-save in any order, without what changes by itself. */
function essence(saved: string): string[] {
  return saved
    .split('\n')
    .filter((line) => !line.startsWith('#'))
    .map((line) => line.replace(/ \[\d+:\d+\]$/, ''))
    .sort()
}
