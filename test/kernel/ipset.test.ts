// The kernel says that it destroyed a set that is not there, unless it is told that the set has to be.

import { beforeAll, describe, expect, it } from 'vitest'
import { destroySets } from '../../src/ipset/destroy-sets.ts'
import { unshareNetwork } from '../../src/system/netns.ts'
import { isRoot } from '../support/nft.ts'

beforeAll(() => {
  if (isRoot) unshareNetwork()
})

describe.skipIf(!isRoot)('sets of ipset (needs root)', () => {
  it('names those alone that were there', () => {
    expect(destroySets(['KUBE-CLUSTER-IP'])).toEqual([])
  })
})
