// What the modes that write nftables tables find when they only look.

import { nftFamily } from '../../nftables/language.ts'
import { NftablesDriver } from '../../nftables/driver.ts'
import { type NftablesState, probeNftables } from '../../nftables/probe.ts'
import type { Table } from '../../nftables/types.ts'
import { readModuleState } from '../../system/kernel-modules.ts'
import type { Family } from '../../lib/ip.ts'
import type { Advice } from '../contract.ts'

/** Kernels are built with these as modules of their own; a kernel that has them elsewhere has a list that does not name them. */
const RULE_MODULES = ['nft_chain_nat', 'nft_nat', 'nft_masq', 'nft_ct', 'nft_fib', 'nft_numgen', 'nft_reject'] as const

const LACKS: Readonly<Partial<Record<NftablesState, Advice>>> = {
  missing: {
    what: 'the kernel has no nftables (module nf_tables)',
    todo: 'boot a kernel with CONFIG_NF_TABLES, or install the package with its modules (linux-modules-extra, kernel-modules)',
  },
  forbidden: {
    what: 'the kernel does not let this process see nftables',
    todo: 'run it as root, or with CAP_NET_ADMIN',
  },
}

export interface TablesOutlook {
  readonly lacks: readonly Advice[]
  readonly warnings: readonly Advice[]
  readonly tables: readonly Table[]
}

/** Whether nftables works here, and which tables of this name there are. */
export function lookAtTables(table: string, families: readonly Family[]): TablesOutlook {
  const state = probeNftables()
  const lack = LACKS[state]
  const missing = RULE_MODULES.filter((name) => readModuleState(name) === 'missing')
  const warnings = missing.map((name) => ({
    what: `the module ${name} is not among the installed ones`,
    todo: `install it, unless this kernel has it built in: grep -i ${name} /boot/config-$(uname -r)`,
  }))
  return {
    lacks: lack === undefined ? [] : [lack],
    warnings,
    // A module that is not loaded has no tables.
    tables: state === 'works' ? families.flatMap((family) => readTable(family, table) ?? []) : [],
  }
}

function readTable(family: Family, table: string): Table | undefined {
  const driver = new NftablesDriver({ family: nftFamily(family), table })
  try {
    return driver.read()
  } finally {
    driver.close()
  }
}
