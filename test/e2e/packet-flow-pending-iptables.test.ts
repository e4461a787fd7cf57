import { iptablesNft } from '../faults/modes.ts'
import { testPendingPackets } from './pending.suite.ts'

testPendingPackets(iptablesNft, { histories: 100, atOnce: 100 })
