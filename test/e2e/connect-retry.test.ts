import { testConnectRetry } from './connect-retry.suite.ts'

testConnectRetry('nftables')
