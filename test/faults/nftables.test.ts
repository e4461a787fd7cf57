import { testKernelErrors } from './kernel-errors.suite.ts'
import { nftables } from './modes.ts'

testKernelErrors(nftables)
