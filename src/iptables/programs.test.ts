import { describe, expect, it } from 'vitest'
import {
  canWait,
  chooseBackend,
  hasRandomFully,
  type IptablesPrograms,
  parseVersion,
  programName,
  versionProblem,
  versionWarning,
} from './programs.ts'

function programs(printed: string, name = 'iptables'): IptablesPrograms {
  return { name, ...parseVersion(printed)! }
}

describe('parseVersion()', () => {
  it.each([
    ['iptables v1.8.9 (nf_tables)', '1.8.9', 'nft'],
    ['iptables v1.8.9 (legacy)', '1.8.9', 'legacy'],
    ['iptables v1.6.1', '1.6.1', 'legacy'],
    ['iptables v1.4.19.1', '1.4.19', 'legacy'],
  ])('reads %j', (printed, version, backend) => {
    const found = parseVersion(printed)!
    expect(Object.values(found.version).join('.')).toBe(version)
    expect(found.backend).toBe(backend)
  })

  it('is undefined for something else', () => {
    expect(parseVersion('BusyBox')).toBeUndefined()
  })
})

describe('what a version can do', () => {
  it('versionProblem() names versions that are too old', () => {
    expect(versionProblem(programs('iptables v1.4.10'))).toBe('iptables is of version 1.4.10, it takes at least 1.4.11')
    expect(versionProblem(programs('iptables v1.4.11'))).toBeUndefined()
  })

  it('canWait() and hasRandomFully() since 1.6.2', () => {
    expect([canWait(programs('v1.6.1')), hasRandomFully(programs('v1.6.1'))]).toEqual([false, false])
    expect([canWait(programs('v1.6.2')), hasRandomFully(programs('v1.8.0'))]).toEqual([true, true])
  })

  it('versionWarning() warns about the first versions of iptables-nft', () => {
    expect(versionWarning(programs('v1.8.2 (nf_tables)', 'iptables-nft'))).toContain('update it to 1.8.4')
    expect(versionWarning(programs('v1.8.2 (legacy)'))).toBeUndefined()
    expect(versionWarning(programs('v1.8.4 (nf_tables)'))).toBeUndefined()
  })
})

it('programName() is that of the family', () => {
  const nft = programs('v1.8.9 (nf_tables)', 'iptables-nft')
  expect(programName(nft, 4, '-save')).toBe('iptables-nft-save')
  expect(programName(nft, 6, '-restore')).toBe('ip6tables-nft-restore')
})

describe('chooseBackend()', () => {
  const choose = (found: { nftMangle?: string; nft?: string; legacy?: string }) =>
    chooseBackend({
      nftMangle: () => [found.nftMangle ?? '', ''],
      nft: () => [found.nft ?? ''],
      legacy: () => [found.legacy ?? ''],
    })
  const hint = '*mangle\n:KUBE-IPTABLES-HINT - [0:0]\nCOMMIT\n'
  const canary = '*mangle\n:KUBE-KUBELET-CANARY - [0:0]\nCOMMIT\n'
  const rules = (count: number) => '-A INPUT -j ACCEPT\n'.repeat(count)

  it('takes the one in which kubelet left a hint, iptables-nft first', async () => {
    expect(await choose({ nftMangle: hint, legacy: canary + rules(9) })).toMatchObject({ backend: 'nft' })
    expect(await choose({ legacy: canary, nft: rules(9) })).toMatchObject({ backend: 'legacy' })
  })

  it('takes the one that has more rules', async () => {
    expect(await choose({ legacy: rules(3), nft: rules(2) })).toMatchObject({ backend: 'legacy' })
    expect(await choose({ legacy: rules(2), nft: rules(2) })).toMatchObject({ backend: 'nft' })
  })

  it('takes iptables-nft where there is nothing', async () => {
    expect(await choose({})).toEqual({ backend: 'nft', reason: 'neither has rules' })
  })
})
