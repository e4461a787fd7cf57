import { keepsTime } from './kernel-time.suite.ts'

keepsTime('iptables', ['source ranges'])
