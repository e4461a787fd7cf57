// Random clusters with real packets in the ipvs mode, on a kernel that has IPVS.

import { testRandomPairs } from '../e2e/random-pairs.suite.ts'

testRandomPairs('ipvs', 50)
