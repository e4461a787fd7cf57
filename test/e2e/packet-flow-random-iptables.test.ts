import { testRandomPairs } from './random-pairs.suite.ts'

testRandomPairs('iptables', 100)
