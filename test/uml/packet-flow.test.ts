// The packet-flow table in the ipvs mode, with real packets, on a kernel that has IPVS.

import { testPacketFlow } from '../e2e/packet-flow.suite.ts'

testPacketFlow('ipvs')
