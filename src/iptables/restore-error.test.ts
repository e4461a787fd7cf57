import { describe, expect, it } from 'vitest'
import { parseRestoreError } from './restore-error.ts'

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
})
