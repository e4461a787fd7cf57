// Where iptables-legacy differs: nothing tells of changes, and a table is replaced as a whole.

import { testChurn } from './churn.suite.ts'
import { testKernelErrors } from './kernel-errors.suite.ts'
import { testKills } from './kills.suite.ts'
import { iptablesLegacy } from './modes.ts'
import { testNodeAway } from './node-away.suite.ts'
import { testTwoProxies } from './two-proxies.suite.ts'

testKernelErrors(iptablesLegacy, /fork|xtables/)
testNodeAway(iptablesLegacy)
testTwoProxies(iptablesLegacy)
testKills(iptablesLegacy, 4)
testChurn(iptablesLegacy, 4)
