import { describe } from 'vitest'
import { testLimits } from './limits.suite.ts'

describe.each(['nftables', 'iptables', 'userspace'] as const)('limits of connections in %s mode', (mode) => {
  testLimits(mode)
})
