import { beforeAll, describe, expect, it } from 'vitest'
import { listTableNames } from '../../src/nftables/list-tables.ts'
import { probeLimits } from '../../src/nftables/probe-limits.ts'
import { unshareNetwork } from '../../src/system/netns.ts'
import { isRoot } from '../support/nft.ts'

describe.runIf(isRoot)('limits', () => {
  beforeAll(() => unshareNetwork())

  it('are something that this kernel has, and asking leaves nothing', () => {
    expect(probeLimits()).toBe(true)
    expect(listTableNames()).toEqual([])
  })
})
