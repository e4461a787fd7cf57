// Retries in the ipvs mode, on a kernel that has IPVS.

import { testConnectRetry } from '../e2e/connect-retry.suite.ts'

testConnectRetry('ipvs', { dead: 1 })
