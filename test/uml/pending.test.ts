// Packets that are pending while rules change, in the ipvs mode, on a kernel that has IPVS.

import { testPendingPackets } from '../e2e/pending.suite.ts'
import { ipvs } from '../faults/modes.ts'

testPendingPackets(ipvs, { histories: 100, atOnce: 50 })
