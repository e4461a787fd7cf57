// The same with endpoints that the clients' own sockets choose, where that is possible.

import { testPacketFlow } from './packet-flow.suite.ts'

testPacketFlow('iptables', { balancesSockets: true })
