// The same with endpoints that the clients' own sockets choose, where that is possible.

import { nftables } from '../faults/modes.ts'
import { testPendingPackets } from './pending.suite.ts'

testPendingPackets(nftables, { histories: 100, atOnce: 100, balancesSockets: true })
