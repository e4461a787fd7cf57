import { testChurn } from './churn.suite.ts'
import { testClockJumps } from './clock.suite.ts'
import { testHalfFailures } from './half-failures.suite.ts'
import { testKernelErrors } from './kernel-errors.suite.ts'
import { testKills } from './kills.suite.ts'
import { nftables } from './modes.ts'
import { testNodeAway } from './node-away.suite.ts'
import { testTwoProxies } from './two-proxies.suite.ts'

testKernelErrors(nftables)
testHalfFailures(nftables, ['ENOBUFS', 'EPERM'])
testClockJumps(nftables)
testNodeAway(nftables)
testTwoProxies(nftables)
testKills(nftables, 10)
testChurn(nftables, 6)
