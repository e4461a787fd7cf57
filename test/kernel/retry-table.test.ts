// The table of retries is what nft makes of its text, the kernel takes it, and nft can print it.

import { execFileSync } from 'node:child_process'
import { describe, expect, it } from 'vitest'
import { formatTable } from '../../src/nftables/format.ts'
import { planRetryTable } from '../../src/retry/plan-table.ts'
import { compileTableWithNft } from '../support/nft-debug.ts'

describe.each([4, 6] as const)('the table of retries for IPv%d', (family) => {
  it.each([false, true])('is what nft makes of its text, behind IPVS: %s', (behindIpvs) => {
    const table = planRetryTable({ family, group: 10256, behindIpvs })
    const compiled = compileTableWithNft(formatTable(table))
    for (const chain of table.chains.values()) {
      expect(compiled.get(chain.name) ?? [], chain.name).toEqual(chain.rules.map((rule) => rule.expressions))
    }
  })

  it('is taken by the kernel, and printed by nft', () => {
    const text = formatTable(planRetryTable({ family, group: 10256, behindIpvs: true }))
    const printed = execFileSync('unshare', ['-n', 'sh', '-c', 'nft -f - && nft list ruleset'], {
      input: text,
      encoding: 'utf8',
    })
    expect(printed).toContain('log group 10256 snaplen 128 drop')
  })
})
