import { describe } from 'vitest'
import { testWeights, type WeightsOptions } from './weights.suite.ts'

describe.each<WeightsOptions>([
  { mode: 'nftables', chosen: 'by chance' },
  { mode: 'nftables', chosen: 'by chance', atConnect: true },
  { mode: 'iptables', chosen: 'by chance' },
  { mode: 'userspace', chosen: 'in turn' },
])('weights: %o', (options) => {
  testWeights(options)
})
