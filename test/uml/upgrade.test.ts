// Upgrades in the ipvs mode, on a kernel that has IPVS.

import { testUpgrade } from '../e2e/upgrade.suite.ts'

testUpgrade('ipvs')
