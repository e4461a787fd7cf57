import { keepsTime } from './kernel-time.suite.ts'

keepsTime('nftables')
