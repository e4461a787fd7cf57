import { describe, expect, it } from 'vitest'
import { parseRestoreError, saysNoSuchChain } from './restore-error.ts'

const text = '*nat\n:KUBE-X - [0:0]\n-A KUBE-X -j NOWHERE\nCOMMIT\n'

// Each as iptables 1.8.9 prints it.
describe('parseRestoreError()', () => {
  it.each([
    ["iptables-restore v1.8.9 (legacy): Couldn't load target `NOWHERE'\n\nError occurred at line: 3\nTry `-h'", 3],
    ['iptables-nft-restore v1.8.9 (nf_tables): \nline 3: RULE_APPEND failed (Invalid argument): rule in chain X', 3],
    ['iptables-restore: line 3 failed', 3],
    ['iptables-restore: line 4 failed', undefined],
    ['iptables-restore: line 17 failed', undefined],
    ['something else', undefined],
  ])('finds the line in %j', (stderr, line) => {
    expect(parseRestoreError(stderr, text).line).toBe(line)
  })

  it('shows the line that was refused', () => {
    expect(parseRestoreError('iptables-restore: line 3 failed', text).message).toBe(
      'Cannot change rules: iptables-restore: line 3 failed (-A KUBE-X -j NOWHERE)',
    )
  })

  it.each([
    'iptables-nft-restore/1.8.9 (nf_tables) Failed to initialize nft: Cannot allocate memory',
    'iptables-nft-restore/1.8.9 (nf_tables) Failed to initialize nft: Too many open files',
    'iptables-nft-restore v1.8.9 (nf_tables): Could not fetch rule set generation id: Memory allocation problem',
    'iptables-nft-restore v1.8.9 (nf_tables): Could not fetch rule set generation id: No buffer space available',
    'iptables-nft-restore v1.8.9 (nf_tables): Could not fetch rule set generation id: Resource temporarily unavailable',
    'iptables-nft-restore v1.8.9 (nf_tables): \nline 3: RULE_APPEND failed (Cannot allocate memory): rule in chain X',
  ])('takes %j for a shortage', (stderr) => {
    expect(parseRestoreError(stderr, text).isShortage).toBe(true)
  })

  it.each([
    'iptables-nft-restore v1.8.9 (nf_tables): \nline 3: RULE_APPEND failed (Invalid argument): rule in chain X',
    'iptables-restore: line 4 failed',
  ])('takes %j for a refusal', (stderr) => {
    expect(parseRestoreError(stderr, text).isShortage).toBe(false)
  })
})

// As iptables 1.8.9 prints it, with exit code 1 for each.
describe('saysNoSuchChain()', () => {
  it.each([
    ['iptables: No chain/target/match by that name.\n', true],
    ["iptables v1.8.9 (nf_tables): chain `KUBE-X' in table `nat' is incompatible, use 'nft' tool.\n", true],
    ['iptables: Failed to initialize nft: Cannot allocate memory\n', false],
    ['iptables: Failed to initialize nft: Too many open files\n', false],
  ])('%j: %s', (stderr, expected) => {
    expect(saysNoSuchChain(stderr)).toBe(expected)
  })
})
