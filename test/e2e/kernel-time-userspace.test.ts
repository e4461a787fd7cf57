import { keepsTime } from './kernel-time.suite.ts'

keepsTime('userspace', ['source ranges'])
