// What a mode that writes nftables tables says of a kernel that lacks something for them.

import type { NftablesState, SeenRules } from '../nftables/probe.ts'
import type { Advice, ModeOutlook } from './contract.ts'

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

export function adviseOnTables({ state, missingModules }: SeenRules): Pick<ModeOutlook, 'lacks' | 'warnings'> {
  const lack = LACKS[state]
  return {
    lacks: lack === undefined ? [] : [lack],
    // Most kernels have them as modules of their own. One that has them elsewhere has a list that does not name them.
    warnings: missingModules.map((name) => ({
      what: `the module ${name} is not among the installed ones`,
      todo: `install it, unless this kernel has it built in: grep -i ${name} /boot/config-$(uname -r)`,
    })),
  }
}
