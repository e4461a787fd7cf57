// Whether this kernel has nftables.

import { KernelError } from '../lib/errors.ts'
import { readModuleState } from '../system/kernel-modules.ts'
import { NftablesDriver } from './driver.ts'

/** `can be loaded`: the kernel was not asked, for that would load it. `forbidden`: it does not tell this process. */
export type NftablesState = 'works' | 'can be loaded' | 'missing' | 'forbidden'

/** What a kernel without nftables says to a question about it. */
const UNKNOWN_TO_THE_KERNEL = ['EINVAL', 'EOPNOTSUPP', 'EPROTONOSUPPORT']

/** Changes nothing: asks only a kernel that has nftables loaded, or has no list of modules that it could be loaded from. */
export function probeNftables(): NftablesState {
  const state = readModuleState('nf_tables')
  if (state === 'can be loaded' || state === 'missing') return state
  try {
    const driver = new NftablesDriver({ family: 'ip', table: 'any' })
    try {
      driver.generation()
    } finally {
      driver.close()
    }
    return 'works'
  } catch (error) {
    if (!(error instanceof KernelError)) throw error
    if (error.errno === 'EPERM') return 'forbidden'
    if (UNKNOWN_TO_THE_KERNEL.includes(error.errno)) return 'missing'
    throw error
  }
}
