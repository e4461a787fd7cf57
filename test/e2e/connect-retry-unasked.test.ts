// A tenant's annotation does not make the node connect to anything, unless its operator has said that it may.

import { expect, test } from 'vitest'
import { aService, aSlice } from '../support/builders.ts'
import { connectTimes, openRetryRig } from './connect-retry.suite.ts'

const retry = openRetryRig('nftables', { flags: [] })

test('an annotation without the flag: clients are refused at once, and endpoints hear of nobody else', async () => {
  const { target, addresses } = await retry().serve({ fates: ['refuse', 'refuse'], annotation: 'on' })
  const { localPod, node } = retry().rig.network.sources
  expect(await connectTimes(6, localPod, target)).toEqual(Array.from({ length: 6 }, () => 'refused'))
  expect(node.run('nft', ['list', 'tables'])).not.toContain('kube-proxy-retry')
  // A later service is in, so whatever the refusals began has begun.
  const later = aService({})
  retry().rig.cluster.put(later, aSlice(later, ['localB']))
  await retry().rig.settled()
  const attempts = retry().failing.attempts('refuse')
  expect(addresses.reduce((sum, address) => sum + (attempts.get(address) ?? 0), 0)).toBe(6)
})
