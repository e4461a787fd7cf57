// Endpoints to which this node has no way, in the nftables mode. Its own clients hear nothing of it: their kernel sends the next
// SYN, and that is balanced afresh.

import { openRetryRig } from './connect-retry.suite.ts'
import { testRoutes } from './connect-retry-routes.suite.ts'

testRoutes(openRetryRig('nftables'), { heard: ['localPod', 'external'], unreached: 2 })
