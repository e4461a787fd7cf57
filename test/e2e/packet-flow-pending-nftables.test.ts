import { nftables } from '../faults/modes.ts'
import { testPendingPackets } from './pending.suite.ts'

testPendingPackets(nftables, { histories: 100, atOnce: 100 })
