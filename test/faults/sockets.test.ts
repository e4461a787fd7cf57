// Clients whose sockets choose: when the process is killed, the rules serve, and nobody notices.

import { testKills } from './kills.suite.ts'
import { iptablesNft, nftables } from './modes.ts'

testKills(nftables, 10, { balancesSockets: true })
testKills(iptablesNft, 10, { balancesSockets: true })
