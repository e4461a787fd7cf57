import { execFileSync } from 'node:child_process'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { probeIptables } from '../../src/iptables/probe.ts'
import { unshareNetwork } from '../../src/system/netns.ts'
import { UnsupportedError } from '../../src/lib/errors.ts'

const isRoot = process.getuid?.() === 0
const path = process.env['PATH']

describe.skipIf(!isRoot)('probeIptables() (needs root)', () => {
  const folder = mkdtempSync(join(tmpdir(), 'iptables-probe-'))
  beforeAll(unshareNetwork)
  afterEach(() => {
    process.env['PATH'] = path
    for (const backend of ['nft', 'legacy']) {
      for (const table of ['mangle', 'filter']) {
        execFileSync(`iptables-${backend}`, ['-t', table, '-F'])
        execFileSync(`iptables-${backend}`, ['-t', table, '-X'])
      }
    }
    rmSync(folder, { recursive: true, force: true })
  })

  function run(program: string, ...args: string[]): void {
    execFileSync(program, args)
  }

  /** Programs of these names that all do the same. */
  function pretend(names: readonly string[], script: string): void {
    execFileSync('mkdir', ['-p', folder])
    for (const name of names) {
      writeFileSync(join(folder, name), `#!/bin/sh\n${script}\n`)
      chmodSync(join(folder, name), 0o755)
    }
    process.env['PATH'] = `${folder}:${path}`
  }

  it('finds iptables-nft on a machine without rules', async () => {
    const { programs, families, reason } = await probeIptables([4, 6])
    expect(programs).toMatchObject({ name: 'iptables-nft', backend: 'nft' })
    expect(families).toEqual([4, 6])
    expect(reason).toBe('neither has rules')
  })

  it('goes where kubelet left its hint', async () => {
    run('iptables-legacy', '-t', 'mangle', '-N', 'KUBE-IPTABLES-HINT')
    expect(await probeIptables([4])).toMatchObject({ programs: { backend: 'legacy' }, reason: 'kubelet uses it' })
    run('iptables-nft', '-t', 'mangle', '-N', 'KUBE-KUBELET-CANARY')
    expect(await probeIptables([4])).toMatchObject({ programs: { backend: 'nft' }, reason: 'kubelet uses it' })
  })

  it('goes where more rules are', async () => {
    run('iptables-legacy', '-A', 'INPUT', '-p', 'icmp', '-j', 'ACCEPT')
    expect((await probeIptables([4])).programs.name).toBe('iptables-legacy')
    run('iptables-nft', '-A', 'INPUT', '-p', 'icmp', '-j', 'ACCEPT')
    expect((await probeIptables([4])).programs.name).toBe('iptables-nft')
  })

  it('refuses an iptables that is too old', async () => {
    pretend(['iptables-nft', 'iptables-legacy', 'iptables'], 'echo "iptables v1.4.10"')
    await expect(probeIptables([4])).rejects.toThrow(UnsupportedError)
    await expect(probeIptables([4])).rejects.toThrow('Cannot use the iptables mode: iptables-nft is of version 1.4.10')
  })

  it('refuses when there is none', async () => {
    pretend(['iptables-nft', 'iptables-legacy', 'iptables'], 'exit 127')
    await expect(probeIptables([4])).rejects.toThrow('none of the programs iptables-nft, iptables-legacy and iptables')
  })

  it('takes an iptables that has but one kind', async () => {
    pretend(['iptables-nft', 'iptables-legacy'], 'exit 127')
    expect(await probeIptables([4])).toMatchObject({ programs: { name: 'iptables' }, reason: 'it is the only one' })
  })

  it('goes on with one family when the other does not work', async () => {
    pretend(['ip6tables-nft'], 'echo "no such module" >&2; exit 3')
    const { families, warnings } = await probeIptables([4, 6])
    expect(families).toEqual([4])
    expect(warnings).toEqual(['ip6tables-nft cannot use the nat table of the kernel: no such module'])
  })

  it('refuses when no family works', async () => {
    pretend(['iptables-nft'], 'case "$*" in *--version*) echo "iptables v1.8.9 (nf_tables)";; *) exit 3;; esac')
    await expect(probeIptables([4])).rejects.toThrow('cannot use the nat table of the kernel')
  })
})
