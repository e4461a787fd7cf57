// Retries in the ipvs mode, on a kernel that has IPVS.

import { everyCase, testConnectRetry } from '../e2e/connect-retry.suite.ts'

// IPv6 differs in nothing that IPVS does: one of each.
const cases = everyCase.filter(({ source, family }) => family === 4 || source === 'localPod')

testConnectRetry('ipvs', { cases, dead: 1 })
