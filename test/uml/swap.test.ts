// From kube-proxy in ipvs mode to this program and back, on a kernel that has IPVS.

import { testSwap } from '../e2e/swap.suite.ts'

// Into another mode the connections that IPVS carries are lost, as docs/reliability.md says: so in ipvs alone.
testSwap([{ theirs: 'ipvs', ours: ['ipvs'] }])
