import { testPacketFlow } from './packet-flow.suite.ts'

testPacketFlow('ipvs')
