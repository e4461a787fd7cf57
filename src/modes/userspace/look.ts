// What the userspace mode finds on this machine when it only looks.

import { readFdLimit } from '../../system/fd-limit.ts'
import type { Advice, LookOptions, ModeOutlook } from '../contract.ts'
import { adviseOnTables } from '../advise-on-tables.ts'
import { probeRules, readOutlines } from '../../nftables/probe.ts'
import { TABLE } from './plan/names.ts'

/** Two for each connection; with less than this there is a warning when it starts, too. */
const FEW_FDS = 4096

export function lookForUserspace(): ModeOutlook {
  const { lacks, warnings } = adviseOnTables(probeRules())
  const limit = readFdLimit()
  return {
    lacks,
    warnings: [...warnings, ...POLICY, ...(limit < FEW_FDS ? [fewFiles(limit)] : [])],
    uses: ['netlink, no programs'],
  }
}

export function readPresentTables({ families }: LookOptions): string[] {
  return readOutlines(TABLE, families).map(({ family, name }) => `table ${family} ${name}`)
}

const POLICY: readonly Advice[] = [
  {
    what: 'network policies and firewall rules of the forward hook do not hold for what it carries',
    todo: 'use another mode where policies have to hold',
  },
]

function fewFiles(limit: number): Advice {
  return {
    what: `this process may have ${limit} files open, and each connection takes two`,
    todo: 'raise the limit: LimitNOFILE= in systemd, or ulimit -n',
  }
}
