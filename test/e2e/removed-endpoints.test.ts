import { describe } from 'vitest'
import { testRemovedEndpoints } from './removed-endpoints.suite.ts'

describe.each(['nftables', 'iptables'] as const)('connections to removed endpoints in %s mode', (mode) => {
  testRemovedEndpoints(mode)
})
