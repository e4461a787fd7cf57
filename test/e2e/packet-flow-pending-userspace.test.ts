import { userspace } from '../faults/modes.ts'
import { testPendingPackets } from './pending.suite.ts'

testPendingPackets(userspace, { histories: 100, atOnce: 100 })
