import { testRandomPairs } from './random-pairs.suite.ts'

testRandomPairs('userspace', 100)
