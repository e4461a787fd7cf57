// A Service with as many source ranges as etcd takes, in the ipvs mode, on a kernel that has IPVS.

import { keepsTime } from '../e2e/kernel-time.suite.ts'

keepsTime('ipvs', ['source ranges'])
