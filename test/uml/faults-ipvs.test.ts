// What goes wrong around the ipvs mode, on a kernel that has IPVS.

import { testApiLies } from '../faults/api-lies.suite.ts'
import { testChurn } from '../faults/churn.suite.ts'
import { testClockJumps } from '../faults/clock.suite.ts'
import { testHalfFailures } from '../faults/half-failures.suite.ts'
import { testKernelErrors } from '../faults/kernel-errors.suite.ts'
import { testKills } from '../faults/kills.suite.ts'
import { ipvs } from '../faults/modes.ts'
import { testNodeAway } from '../faults/node-away.suite.ts'
import { testTwoProxies } from '../faults/two-proxies.suite.ts'

testKernelErrors(ipvs)
testHalfFailures(ipvs, ['ENOBUFS'])
testClockJumps(ipvs)
testNodeAway(ipvs)
testTwoProxies(ipvs)
testApiLies(ipvs, /repeats|nothing/)
testKills(ipvs, 6)
testChurn(ipvs, 10)
