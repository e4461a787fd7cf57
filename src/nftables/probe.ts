// Whether this kernel has nftables, and which tables of a name; changes nothing.

import { KernelError } from '../lib/errors.ts'
import { readModuleState } from '../system/kernel-modules.ts'
import type { Family } from '../lib/ip.ts'
import { NftablesDriver } from './driver.ts'
import { nftFamily } from './language.ts'
import type { TableOutline } from './types.ts'

/** `can be loaded`: the kernel was not asked, for that would load it. `forbidden`: it does not answer this process. */
export type NftablesState = 'works' | 'can be loaded' | 'missing' | 'forbidden'

/** What a kernel without nftables says to a question about it. */
const UNKNOWN_TO_THE_KERNEL = ['EINVAL', 'EOPNOTSUPP', 'EPROTONOSUPPORT']

/** What rules like ours are made of. */
const RULE_MODULES = ['nft_chain_nat', 'nft_nat', 'nft_masq', 'nft_ct', 'nft_fib', 'nft_numgen', 'nft_reject'] as const

export interface SeenRules {
  readonly state: NftablesState
  /** Modules that our rules need and that are not installed, as far as that can be known. */
  readonly missingModules: readonly string[]
}

export function probeRules(): SeenRules {
  return {
    state: probeNftables(),
    missingModules: RULE_MODULES.filter((name) => readModuleState(name) === 'missing'),
  }
}

/** The tables of this name. A module that is not loaded has none. */
export function readOutlines(table: string, families: readonly Family[]): TableOutline[] {
  return probeNftables() === 'works' ? families.flatMap((family) => readOutline(family, table) ?? []) : []
}

/** Asks only a kernel that has nftables loaded, or has no list of modules that it could be loaded from. */
export function probeNftables(): NftablesState {
  const state = readModuleState('nf_tables')
  if (state === 'can be loaded' || state === 'missing') return state
  try {
    using driver = new NftablesDriver({ family: 'ip', table: 'any' })
    driver.generation()
    return 'works'
  } catch (error) {
    if (!(error instanceof KernelError)) throw error
    if (error.errno === 'EPERM') return 'forbidden'
    if (UNKNOWN_TO_THE_KERNEL.includes(error.errno)) return 'missing'
    throw error
  }
}

function readOutline(family: Family, table: string): TableOutline | undefined {
  using driver = new NftablesDriver({ family: nftFamily(family), table })
  return driver.readOutline()
}
