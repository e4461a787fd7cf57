import { testApiLies } from './api-lies.suite.ts'
import { testChurn } from './churn.suite.ts'
import { testClockJumps } from './clock.suite.ts'
import { testHalfFailures } from './half-failures.suite.ts'
import { testKernelErrors } from './kernel-errors.suite.ts'
import { testKills } from './kills.suite.ts'
import { userspace } from './modes.ts'
import { testNodeAway } from './node-away.suite.ts'
import { testTwoProxies } from './two-proxies.suite.ts'

testKernelErrors(userspace)
testHalfFailures(userspace, ['ENOBUFS'])
testClockJumps(userspace)
testNodeAway(userspace)
testTwoProxies(userspace)
testApiLies(userspace, /repeats|nothing/)
testKills(userspace, 6)
testChurn(userspace, 6)
