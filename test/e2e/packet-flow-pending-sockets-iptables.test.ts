// The same with endpoints that the clients' own sockets choose, where that is possible.

import { iptablesNft } from '../faults/modes.ts'
import { testPendingPackets } from './pending.suite.ts'

testPendingPackets(iptablesNft, { histories: 100, atOnce: 100, balancesSockets: true })
