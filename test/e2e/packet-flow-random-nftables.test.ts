import { testRandomPairs } from './random-pairs.suite.ts'

testRandomPairs('nftables', 100)
