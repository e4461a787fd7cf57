// Retries in the ipvs mode, on a kernel that has IPVS.

import { testConnectRetry } from '../e2e/connect-retry.suite.ts'
import { testRoutes } from '../e2e/connect-retry-routes.suite.ts'

const retry = testConnectRetry('ipvs', { dead: 1 })
// IPVS tells all of its clients that it has no way.
testRoutes(retry, { heard: ['localPod', 'external', 'node'], unreached: 1 })
