import { testApiLies } from './api-lies.suite.ts'
import { testChurn } from './churn.suite.ts'
import { testClockJumps } from './clock.suite.ts'
import { testHalfFailures } from './half-failures.suite.ts'
import { testKernelErrors } from './kernel-errors.suite.ts'
import { testKills } from './kills.suite.ts'
import { iptablesNft } from './modes.ts'
import { testNodeAway } from './node-away.suite.ts'
import { testTwoProxies } from './two-proxies.suite.ts'

testKernelErrors(iptablesNft)
testHalfFailures(iptablesNft, ['ENOBUFS'])
testClockJumps(iptablesNft)
testNodeAway(iptablesNft)
testTwoProxies(iptablesNft)
testApiLies(iptablesNft, /repeats|nothing/)
testKills(iptablesNft, 6)
testChurn(iptablesNft, 6)
