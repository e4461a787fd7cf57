// From kube-proxy in ipvs mode to this program and back, on a kernel that has IPVS.

import { testSwap } from '../e2e/swap.suite.ts'

testSwap([
  { theirs: 'ipvs', ours: ['ipvs'] },
  { theirs: 'ipvs', ours: ['nftables', 'ipvs'] },
])
