// All lies of an API server in one mode: what hears them is the same in every mode. The others are told those that change rules.

import { testApiLies } from './api-lies.suite.ts'
import { nftables } from './modes.ts'

testApiLies(nftables)
