// Where iptables-legacy differs: nothing tells of changes, and a table is replaced as a whole.

import { testKernelErrors } from './kernel-errors.suite.ts'
import { testKills } from './kills.suite.ts'
import { iptablesLegacy } from './modes.ts'
import { testTwoProxies } from './two-proxies.suite.ts'

testKernelErrors(iptablesLegacy, /fork|xtables/)
testTwoProxies(iptablesLegacy)
testKills(iptablesLegacy, 4)
